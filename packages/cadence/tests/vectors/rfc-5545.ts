/** The examples of RFC 5545, section 3.8.5.3, all in America/New_York at 09:00 unless times are given. */
export interface RfcExample {
  readonly title: string
  readonly start: string
  readonly rule: string
  readonly dates: readonly string[]
  /** True if `dates` are the whole recurrence. False if they are only its beginning. */
  readonly isComplete: boolean
}

function example(title: string, start: string, rule: string, dates: string, end: 'complete' | 'open'): RfcExample {
  return { title, start, rule, dates: dates.split(' ').flatMap(readDates), isComplete: end === 'complete' }
}

/** Reads a list of dates: `1997-09-02,09..11` is the second and the ninth to eleventh of September. A time may follow. */
function readDates(text: string): string[] {
  const [, month = '', days = '', times = '09:00'] = /^(\d{4}-\d{2})-([\d,.]+)(?:T([\d:,]+))?$/.exec(text) ?? []
  return days.split(',').flatMap((span) => {
    const [from = '', to = from] = span.split('..')
    const length = Number(to) - Number(from) + 1
    return Array.from({ length }, (_, index) => String(Number(from) + index).padStart(2, '0')).flatMap((day) =>
      times.split(',').map((time) => `${month}-${day}T${time}:00`),
    )
  })
}

const JANUARIES = '1998-01-01..31 1999-01-01..31 2000-01-01..31'
const THIRDS = '00,20,40'
const EVERY_TWENTY_MINUTES = [9, 10, 11, 12, 13, 14, 15, 16]
  .flatMap((hour) => THIRDS.split(',').map((minute) => `${String(hour).padStart(2, '0')}:${minute}`))
  .join(',')

export const RFC_EXAMPLES: readonly RfcExample[] = [
  example('daily, ten times', '1997-09-02', 'FREQ=DAILY;COUNT=10', '1997-09-02..11', 'complete'),
  example(
    'daily until 24 December',
    '1997-09-02',
    'FREQ=DAILY;UNTIL=19971224T000000Z',
    '1997-09-02..30 1997-10-01..31 1997-11-01..30 1997-12-01..23',
    'complete',
  ),
  example(
    'every other day',
    '1997-09-02',
    'FREQ=DAILY;INTERVAL=2',
    '1997-09-02,04,06,08,10,12,14,16,18,20,22,24,26,28,30 1997-10-02,04',
    'open',
  ),
  example(
    'every tenth day, five times',
    '1997-09-02',
    'FREQ=DAILY;INTERVAL=10;COUNT=5',
    '1997-09-02,12,22 1997-10-02,12',
    'complete',
  ),
  example(
    'every day in January, yearly',
    '1998-01-01',
    'FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA',
    JANUARIES,
    'complete',
  ),
  example(
    'every day in January, daily',
    '1998-01-01',
    'FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1',
    JANUARIES,
    'complete',
  ),
  example(
    'weekly, ten times',
    '1997-09-02',
    'FREQ=WEEKLY;COUNT=10',
    '1997-09-02,09,16,23,30 1997-10-07,14,21,28 1997-11-04',
    'complete',
  ),
  example(
    'weekly until 24 December',
    '1997-09-02',
    'FREQ=WEEKLY;UNTIL=19971224T000000Z',
    '1997-09-02,09,16,23,30 1997-10-07,14,21,28 1997-11-04,11,18,25 1997-12-02,09,16,23',
    'complete',
  ),
  example(
    'every other week',
    '1997-09-02',
    'FREQ=WEEKLY;INTERVAL=2;WKST=SU',
    '1997-09-02,16,30 1997-10-14,28 1997-11-11,25 1997-12-09,23 1998-01-06,20 1998-02-03,17',
    'open',
  ),
  example(
    'Tuesday and Thursday for five weeks, by date',
    '1997-09-02',
    'FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH',
    '1997-09-02,04,09,11,16,18,23,25,30 1997-10-02',
    'complete',
  ),
  example(
    'Tuesday and Thursday for five weeks, by count',
    '1997-09-02',
    'FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH',
    '1997-09-02,04,09,11,16,18,23,25,30 1997-10-02',
    'complete',
  ),
  example(
    'every other week on Monday, Wednesday and Friday until 24 December',
    '1997-09-01',
    'FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR',
    '1997-09-01,03,05,15,17,19,29 1997-10-01,03,13,15,17,27,29,31 1997-11-10,12,14,24,26,28 1997-12-08,10,12,22',
    'complete',
  ),
  example(
    'every other week on Tuesday and Thursday, eight times',
    '1997-09-02',
    'FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH',
    '1997-09-02,04,16,18,30 1997-10-02,14,16',
    'complete',
  ),
  example(
    'the first Friday of the month, ten times',
    '1997-09-05',
    'FREQ=MONTHLY;COUNT=10;BYDAY=1FR',
    '1997-09-05 1997-10-03 1997-11-07 1997-12-05 1998-01-02 1998-02-06 1998-03-06 1998-04-03 1998-05-01 1998-06-05',
    'complete',
  ),
  example(
    'the first Friday of the month until 24 December',
    '1997-09-05',
    'FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR',
    '1997-09-05 1997-10-03 1997-11-07 1997-12-05',
    'complete',
  ),
  example(
    'every other month on the first and last Sunday, ten times',
    '1997-09-07',
    'FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU',
    '1997-09-07,28 1997-11-02,30 1998-01-04,25 1998-03-01,29 1998-05-03,31',
    'complete',
  ),
  example(
    'the second to last Monday of the month for six months',
    '1997-09-22',
    'FREQ=MONTHLY;COUNT=6;BYDAY=-2MO',
    '1997-09-22 1997-10-20 1997-11-17 1997-12-22 1998-01-19 1998-02-16',
    'complete',
  ),
  example(
    'the third to last day of the month',
    '1997-09-28',
    'FREQ=MONTHLY;BYMONTHDAY=-3',
    '1997-09-28 1997-10-29 1997-11-28 1997-12-29 1998-01-29 1998-02-26',
    'open',
  ),
  example(
    'the second and fifteenth of the month, ten times',
    '1997-09-02',
    'FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15',
    '1997-09-02,15 1997-10-02,15 1997-11-02,15 1997-12-02,15 1998-01-02,15',
    'complete',
  ),
  example(
    'the first and last day of the month, ten times',
    '1997-09-30',
    'FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1',
    '1997-09-30 1997-10-01,31 1997-11-01,30 1997-12-01,31 1998-01-01,31 1998-02-01',
    'complete',
  ),
  example(
    'every eighteen months on the tenth to fifteenth, ten times',
    '1997-09-10',
    'FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15',
    '1997-09-10..15 1999-03-10..13',
    'complete',
  ),
  example(
    'every Tuesday, every other month',
    '1997-09-02',
    'FREQ=MONTHLY;INTERVAL=2;BYDAY=TU',
    '1997-09-02,09,16,23,30 1997-11-04,11,18,25 1998-01-06,13,20,27 1998-03-03,10,17,24,31',
    'open',
  ),
  example(
    'yearly in June and July, ten times',
    '1997-06-10',
    'FREQ=YEARLY;COUNT=10;BYMONTH=6,7',
    '1997-06-10 1997-07-10 1998-06-10 1998-07-10 1999-06-10 1999-07-10 2000-06-10 2000-07-10 2001-06-10 2001-07-10',
    'complete',
  ),
  example(
    'every other year in January, February and March, ten times',
    '1997-03-10',
    'FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3',
    '1997-03-10 1999-01-10 1999-02-10 1999-03-10 2001-01-10 2001-02-10 2001-03-10 2003-01-10 2003-02-10 2003-03-10',
    'complete',
  ),
  example(
    'every third year on the first, hundredth and two hundredth day, ten times',
    '1997-01-01',
    'FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200',
    '1997-01-01 1997-04-10 1997-07-19 2000-01-01 2000-04-09 2000-07-18 2003-01-01 2003-04-10 2003-07-19 2006-01-01',
    'complete',
  ),
  example(
    'the twentieth Monday of the year',
    '1997-05-19',
    'FREQ=YEARLY;BYDAY=20MO',
    '1997-05-19 1998-05-18 1999-05-17',
    'open',
  ),
  example(
    'Monday of week 20',
    '1997-05-12',
    'FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO',
    '1997-05-12 1998-05-11 1999-05-17',
    'open',
  ),
  example(
    'every Thursday in March',
    '1997-03-13',
    'FREQ=YEARLY;BYMONTH=3;BYDAY=TH',
    '1997-03-13,20,27 1998-03-05,12,19,26 1999-03-04,11,18,25',
    'open',
  ),
  example(
    'every Thursday in June, July and August',
    '1997-06-05',
    'FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8',
    '1997-06-05,12,19,26 1997-07-03,10,17,24,31 1997-08-07,14,21,28 1998-06-04,11,18,25 1998-07-02,09,16,23,30 1998-08-06,13,20,27',
    'open',
  ),
  example(
    'every Friday the thirteenth',
    '1997-09-02',
    'FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13',
    '1998-02-13 1998-03-13 1998-11-13 1999-08-13 2000-10-13',
    'open',
  ),
  example(
    'the first Saturday after the first Sunday of the month',
    '1997-09-13',
    'FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13',
    '1997-09-13 1997-10-11 1997-11-08 1997-12-13 1998-01-10 1998-02-07 1998-03-07 1998-04-11 1998-05-09 1998-06-13',
    'open',
  ),
  example(
    'every fourth year, the first Tuesday after a Monday in November',
    '1996-11-05',
    'FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8',
    '1996-11-05 2000-11-07 2004-11-02',
    'open',
  ),
  example(
    'the third of Tuesday, Wednesday or Thursday for three months',
    '1997-09-04',
    'FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3',
    '1997-09-04 1997-10-07 1997-11-06',
    'complete',
  ),
  example(
    'the second to last weekday of the month',
    '1997-09-29',
    'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2',
    '1997-09-29 1997-10-30 1997-11-27 1997-12-30 1998-01-29 1998-02-26 1998-03-30',
    'open',
  ),
  // The RFC prints UNTIL=19970902T170000Z, which is 13:00 in New York, and lists 15:00: it means 17:00 local.
  example(
    'every three hours until 17:00',
    '1997-09-02',
    'FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z',
    '1997-09-02T09:00,12:00,15:00',
    'complete',
  ),
  example(
    'every fifteen minutes, six times',
    '1997-09-02',
    'FREQ=MINUTELY;INTERVAL=15;COUNT=6',
    '1997-09-02T09:00,09:15,09:30,09:45,10:00,10:15',
    'complete',
  ),
  example(
    'every hour and a half, four times',
    '1997-09-02',
    'FREQ=MINUTELY;INTERVAL=90;COUNT=4',
    '1997-09-02T09:00,10:30,12:00,13:30',
    'complete',
  ),
  example(
    'every twenty minutes from 09:00 to 16:40, daily',
    '1997-09-02',
    'FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40',
    `1997-09-02..04T${EVERY_TWENTY_MINUTES}`,
    'open',
  ),
  example(
    'every twenty minutes from 09:00 to 16:40, minutely',
    '1997-09-02',
    'FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16',
    `1997-09-02..04T${EVERY_TWENTY_MINUTES}`,
    'open',
  ),
  example(
    'weeks that start on Monday',
    '1997-08-05',
    'FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO',
    '1997-08-05,10,19,24',
    'complete',
  ),
  example(
    'weeks that start on Sunday',
    '1997-08-05',
    'FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU',
    '1997-08-05,17,19,31',
    'complete',
  ),
  example(
    'a date that February lacks',
    '2007-01-15',
    'FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5',
    '2007-01-15,30 2007-02-15 2007-03-15,30',
    'complete',
  ),
]
