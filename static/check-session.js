/* The check-session frame (OpenID Connect Session Management 1.0, sections 3.2 and 3.3): a client's page sends
   "client_id session_state" and is told "unchanged", "changed" or "error". Plain ES5, for whatever browser frames it.
   protocol/session_state.rs computes the same hash. */
(function () {
  'use strict';
  var cookie = document.body.getAttribute('data-cookie');

  /* The first 32 bits of the fractional parts of the square (root 2) or cube (root 3) roots of the first primes. */
  function constants(count, root) {
    var found = [];
    for (var candidate = 2; found.length < count; candidate += 1) {
      var prime = true;
      for (var divisor = 2; divisor * divisor <= candidate; divisor += 1) {
        if (candidate % divisor === 0) { prime = false; }
      }
      if (prime) {
        var value = Math.pow(candidate, 1 / root);
        found.push(((value - Math.floor(value)) * 4294967296) | 0);
      }
    }
    return found;
  }

  var START = constants(8, 2);
  var ROUND = constants(64, 3);

  function rotate(word, bits) {
    return (word >>> bits) | (word << (32 - bits));
  }

  /* One block of 16 words into the state (FIPS 180-4, section 6.2.2). */
  function compress(state, words) {
    var schedule = words.slice(0);
    for (var t = 16; t < 64; t += 1) {
      var a = schedule[t - 15];
      var b = schedule[t - 2];
      var small0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
      var small1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
      schedule[t] = (schedule[t - 16] + small0 + schedule[t - 7] + small1) | 0;
    }
    var s = state.slice(0);
    for (var i = 0; i < 64; i += 1) {
      var big1 = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
      var choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
      var first = (s[7] + big1 + choice + ROUND[i] + schedule[i]) | 0;
      var big0 = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
      var majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
      s = [(first + big0 + majority) | 0, s[0], s[1], s[2], (s[3] + first) | 0, s[4], s[5], s[6]];
    }
    for (var j = 0; j < 8; j += 1) { state[j] = (state[j] + s[j]) | 0; }
  }

  /* SHA-256 of a text's UTF-8 bytes, in hex. */
  function sha256(text) {
    var bytes = unescape(encodeURIComponent(text));
    var length = bytes.length;
    var padded = ((length + 8) >>> 6) * 16 + 16;
    var words = [];
    for (var w = 0; w < padded; w += 1) { words.push(0); }
    for (var i = 0; i < length; i += 1) { words[i >> 2] |= bytes.charCodeAt(i) << (24 - (i % 4) * 8); }
    words[length >> 2] |= 0x80 << (24 - (length % 4) * 8);
    words[padded - 1] = length * 8;
    var state = START.slice(0);
    for (var block = 0; block < padded; block += 16) { compress(state, words.slice(block, block + 16)); }
    var hex = '';
    for (var j = 0; j < 8; j += 1) { hex += ('0000000' + (state[j] >>> 0).toString(16)).slice(-8); }
    return hex;
  }

  /* This browser's state; empty where the browser shows a frame no cookies. */
  function browserState() {
    var pairs = document.cookie.split('; ');
    for (var i = 0; i < pairs.length; i += 1) {
      if (pairs[i].indexOf(cookie + '=') === 0) { return pairs[i].slice(cookie.length + 1); }
    }
    return '';
  }

  function judge(message, origin) {
    var parts = typeof message === 'string' ? /^(.+) ([0-9a-f]{64})\.([A-Za-z0-9_-]+)$/.exec(message) : null;
    var state = browserState();
    if (!parts || !state) { return 'error'; }
    return sha256([parts[1], origin, state, parts[3]].join(' ')) === parts[2] ? 'unchanged' : 'changed';
  }

  /* Only whoever frames this page is answered: its own origin where the browser tells it, else a window beside or above. */
  function isFramer(event) {
    var ancestors = window.location.ancestorOrigins;
    if (ancestors && ancestors.length > 0) { return event.origin === ancestors[0]; }
    return event.source === window.parent || event.source.parent === window.parent;
  }

  window.addEventListener('message', function (event) {
    if (event.source && event.source !== window && event.origin !== 'null' && isFramer(event)) {
      event.source.postMessage(judge(event.data, event.origin), event.origin);
    }
  }, false);
})();
