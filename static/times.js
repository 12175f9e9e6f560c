/* Shows the times of the account page as the reader's own clock and language do. Without it they stand there in UTC. */
(function () {
  'use strict';
  /* Not dateStyle: a browser that does not know it leaves out the time, and no error says so. */
  var parts = { year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' };
  var format = new Intl.DateTimeFormat(document.documentElement.lang, parts);
  document.querySelectorAll('time[datetime*="T"]').forEach(function (time) {
    time.textContent = format.format(new Date(time.dateTime));
  });
})();
