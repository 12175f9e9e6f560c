/* Shows the times of the account page as the reader's own clock and language do. Without it they stand there in UTC. */
(function () {
  'use strict';
  var format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' });
  document.querySelectorAll('time').forEach(function (time) {
    time.textContent = format.format(new Date(time.dateTime));
  });
})();
