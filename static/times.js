/* Shows the times of a page as the reader's own clock, language and region do. Without it they stand there in UTC. */
(function () {
  'use strict';
  /* Not dateStyle: a browser that does not know it leaves out the time, and no error says so. */
  var parts = {
    year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short'
  };
  var page = document.documentElement.lang;
  var reader = navigator.language || page;
  /* The region is the browser's alone to know: 'en' would be written as in the United States. */
  var isSame = reader.split('-')[0] === page.split('-')[0];
  var format = new Intl.DateTimeFormat(isSame ? reader : page, parts);
  document.querySelectorAll('time[datetime*="T"]').forEach(function (time) {
    time.textContent = format.format(new Date(time.dateTime));
  });
})();
