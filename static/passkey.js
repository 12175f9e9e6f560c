/* Passkeys: shows what needs them where the browser has them, asks for one, and sends its answer with the form around it. */
(function () {
  'use strict';
  var P = window.PublicKeyCredential;
  var waiting = null;

  function show(what, shown) {
    document.querySelectorAll(what).forEach(function (part) { part.hidden = !shown; });
  }

  /* Both by hand. Browsers that have passkeys may lack parseRequestOptionsFromJSON and its like (Safari before 18.4,
     Chrome before 129), and credentials that password managers put in the browser's place cannot do toJSON. */
  function bytes(base64url) {
    var text = atob(base64url.replace(/-/g, '+').replace(/_/g, '/'));
    return Uint8Array.from(text, function (one) { return one.charCodeAt(0); });
  }

  function base64url(buffer) {
    var text = String.fromCharCode.apply(null, new Uint8Array(buffer || []));
    return btoa(text).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  }

  /* What the page asks for, with bytes where JSON has base64url. */
  function asked(form) {
    var options = JSON.parse(form.dataset.passkey);
    options.challenge = bytes(options.challenge);
    if (options.user) options.user.id = bytes(options.user.id);
    [options.allowCredentials, options.excludeCredentials].forEach(function (known) {
      (known || []).forEach(function (one) { one.id = bytes(one.id); });
    });
    return options;
  }

  function send(form, credential) {
    var response = credential.response;
    var answers = {
      id: credential.rawId, client_data: response.clientDataJSON, authenticator_data: response.authenticatorData,
      signature: response.signature, user_handle: response.userHandle, attestation_object: response.attestationObject,
    };
    Object.keys(answers).forEach(function (name) {
      if (form.elements[name]) form.elements[name].value = base64url(answers[name]);
    });
    form.submit();
  }

  function ask(form, mediation) {
    if (waiting) waiting.abort();
    var own = waiting = new AbortController();
    var what = { publicKey: asked(form), signal: own.signal };
    if (mediation) what.mediation = mediation;
    var answer = form.elements.attestation_object ? navigator.credentials.create(what) : navigator.credentials.get(what);
    answer.then(function (credential) { send(form, credential); }, function () {
      /* Whoever says no stays on the page. The field offers passkeys again, which the question had ended. */
      if (own === waiting && !mediation) offer(form);
    });
  }

  /* Lets the field for the user name offer passkeys, where the browser can. */
  function offer(form) {
    waiting = null;
    if (!document.querySelector('input[autocomplete~="webauthn"]') || !P.isConditionalMediationAvailable) return;
    P.isConditionalMediationAvailable().then(function (can) { if (can && !waiting) ask(form, 'conditional'); });
  }

  show('[data-without-script]', false);
  show('[data-without-passkey]', !P);
  show('[data-needs-passkey]', P);
  if (!P) return;
  /* What the browser's keepers of passkeys are told, once: the page may come back from the back/forward cache when the list is
     no longer true, and they may delete what is not in it. */
  document.querySelectorAll('[data-signals]').forEach(function (part) {
    var told = JSON.parse(part.dataset.signals);
    part.remove();
    (told.userId ? ['signalAllAcceptedCredentials', 'signalCurrentUserDetails'] : ['signalUnknownCredential']).forEach(function (name) {
      if (P[name]) P[name](told).catch(function () {});
    });
  });
  document.querySelectorAll('form[data-passkey]').forEach(function (form) {
    form.addEventListener('submit', function (event) { event.preventDefault(); ask(form); });
    offer(form);
  });
})();
