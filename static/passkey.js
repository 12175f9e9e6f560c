/* Passkeys: shows what needs them where the browser has them, asks for one, and sends its answer with the form around it. */
(function () {
  'use strict';
  var P = window.PublicKeyCredential;
  if (!P || !P.parseRequestOptionsFromJSON || !P.parseCreationOptionsFromJSON) return;
  var waiting = null;

  /* Not toJSON: credentials that password managers put in the browser's place cannot do that. */
  function base64url(buffer) {
    var bytes = String.fromCharCode.apply(null, new Uint8Array(buffer || []));
    return btoa(bytes).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
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
    waiting = new AbortController();
    var options = JSON.parse(form.dataset.passkey);
    var asked = form.elements.attestation_object
      ? navigator.credentials.create({ publicKey: P.parseCreationOptionsFromJSON(options), signal: waiting.signal })
      : navigator.credentials.get({ publicKey: P.parseRequestOptionsFromJSON(options), signal: waiting.signal, mediation: mediation });
    /* Whoever says no stays on the page. */
    asked.then(function (credential) { send(form, credential); }, function () {});
  }

  document.querySelectorAll('[data-needs-passkey]').forEach(function (part) { part.hidden = false; });
  document.querySelectorAll('[data-without-passkey]').forEach(function (part) { part.hidden = true; });
  document.querySelectorAll('form[data-passkey]').forEach(function (form) {
    form.addEventListener('submit', function (event) { event.preventDefault(); ask(form); });
    if (document.querySelector('input[autocomplete~="webauthn"]') && P.isConditionalMediationAvailable) {
      P.isConditionalMediationAvailable().then(function (can) { if (can && !waiting) ask(form, 'conditional'); });
    }
  });
})();
