/** An input that `parse` must reject, and a problem that it must report. */
export interface Hostile {
  readonly title: string
  readonly input: unknown
  readonly code: string
  readonly field: string
}

const START = '2027-01-01T09:00:00'
const START_AT = '2027-01-01T09:00:00Z'

function cron(expression: unknown, code: string): Hostile {
  return { title: `cron ${show(expression)}`, input: { kind: 'cron', expression }, code, field: 'expression' }
}

function rrule(rule: unknown, code: string, more: object = {}, field = 'rule'): Hostile {
  return {
    title: `rrule ${show(rule)} ${show(more)}`,
    input: { kind: 'rrule', rule, start: START, ...more },
    code,
    field,
  }
}

function interval(every: unknown, code: string, more: object = { startAt: START_AT }, field = 'every'): Hostile {
  return { title: `interval ${show(every)} ${show(more)}`, input: { kind: 'interval', every, ...more }, code, field }
}

function once(at: unknown, code: string, more: object = {}, field = 'at'): Hostile {
  return { title: `once ${show(at)} ${show(more)}`, input: { kind: 'once', at, ...more }, code, field }
}

function frequency(more: object, code: string, field: string): Hostile {
  const input = { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '09:00', ...more }
  return { title: `frequency ${show(more)}`, input, code, field }
}

function zoned(timezone: unknown, code = 'unknown_timezone'): Hostile {
  return {
    title: `zone ${show(timezone)}`,
    input: { kind: 'cron', expression: '0 9 * * *', timezone },
    code,
    field: 'timezone',
  }
}

function bounded(more: object, code: string, field: string): Hostile {
  return { title: `bounds ${show(more)}`, input: { kind: 'cron', expression: '0 9 * * *', ...more }, code, field }
}

function whole(title: string, input: unknown, code: string, field = ''): Hostile {
  return { title, input, code, field }
}

function show(value: unknown): string {
  const text =
    typeof value === 'bigint' || typeof value === 'symbol' ? String(value) : (JSON.stringify(value) ?? String(value))
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length})` : text
}

const cyclic: Record<string, unknown> = { kind: 'cron', expression: '0 9 * * *' }
cyclic['self'] = cyclic

const dates = (count: number) =>
  Array.from({ length: count }, (_, index) => new Date(Date.UTC(2027, 0, 1, 0, index)).toISOString().slice(0, 19))

export const HOSTILE: readonly Hostile[] = [
  // Cron.
  cron('60 * * * *', 'out_of_range'),
  cron('0 24 * * *', 'out_of_range'),
  cron('0 0 0 * *', 'out_of_range'),
  cron('0 0 32 * *', 'out_of_range'),
  cron('0 0 * 13 *', 'out_of_range'),
  cron('0 0 * 0 *', 'out_of_range'),
  cron('0 0 * * 8', 'out_of_range'),
  cron('*/0 * * * *', 'out_of_range'),
  cron('*/60 * * * *', 'out_of_range'),
  cron('5-1 * * * *', 'out_of_range'),
  cron('0 0 * * SAT-MON', 'out_of_range'),
  cron('99999999999999999999 * * * *', 'out_of_range'),
  cron('0 0 * * MON#0', 'out_of_range'),
  cron('0 0 * * MON#6', 'out_of_range'),
  cron('H * * * *', 'unsupported'),
  cron('H(0-29)/10 * * * *', 'unsupported'),
  cron('? * * * *', 'unsupported'),
  cron('0 0 ? * *', 'unsupported'),
  cron('0 0 15W * *', 'unsupported'),
  cron('0 0 LW * *', 'unsupported'),
  cron('@reboot', 'unsupported'),
  cron('@every 5m', 'unsupported'),
  cron('5/15 * * * *', 'unsupported'),
  cron('CRON_TZ=UTC 0 9 * * *', 'unsupported'),
  cron('0 0 9 * * *', 'unsupported'),
  cron('0 0 9 * * * 2027', 'unsupported'),
  cron('* * * * * *', 'unsupported'),
  cron('0 9 * *', 'syntax'),
  cron('', 'syntax'),
  cron('     ', 'syntax'),
  cron('@', 'syntax'),
  cron('@fortnightly', 'syntax'),
  cron('0 0 * * L#W?', 'syntax'),
  cron('0 0 * * MONDAY', 'syntax'),
  cron('0 0 * JANUARY *', 'syntax'),
  cron('0 0 1,,2 * *', 'syntax'),
  cron('0 0 1- * *', 'syntax'),
  cron('0 0 1-2-3 * *', 'syntax'),
  cron('0 0 */2/2 * *', 'syntax'),
  cron('*/1.5 * * * *', 'syntax'),
  cron('+5 * * * *', 'syntax'),
  cron('-5 * * * *', 'syntax'),
  cron('1e1 * * * *', 'syntax'),
  cron('0x5 * * * *', 'syntax'),
  cron('0 9\u0000 * * *', 'syntax'),
  cron('\u0000', 'syntax'),
  cron('０ ９ * * *', 'syntax'),
  cron('٠ ٩ * * *', 'syntax'),
  cron('0 9 * * ＊', 'syntax'),
  cron('0\u00a09\u00a0*\u00a0*\u00a0*', 'syntax'),
  cron('0 9 * * *\n* * * * *', 'syntax'),
  cron('0 0 30 2 *', 'never_fires'),
  cron('0 0 31 2,4,6,9,11 *', 'never_fires'),
  cron(`${'0,'.repeat(20_000)}0 * * * *`, 'too_long'),
  cron(`${'0,'.repeat(500)}0 * * * *`, 'too_long'),
  cron('*'.repeat(1_001), 'too_long'),
  cron(5, 'wrong_type'),
  cron(null, 'wrong_type'),
  cron(['0', '9', '*', '*', '*'], 'wrong_type'),
  cron({ toString: () => '0 9 * * *' }, 'wrong_type'),
  cron(Symbol('0 9 * * *'), 'wrong_type'),
  cron(9n, 'wrong_type'),
  cron(() => '0 9 * * *', 'wrong_type'),
  cron(undefined, 'missing_field'),

  // RRULE.
  rrule('FREQ=DAILY;INTERVAL=0', 'out_of_range'),
  rrule('FREQ=DAILY;INTERVAL=-1', 'out_of_range'),
  rrule('FREQ=DAILY;INTERVAL=99999999999999999999', 'out_of_range'),
  rrule('FREQ=YEARLY;INTERVAL=101', 'out_of_range'),
  rrule('FREQ=MONTHLY;INTERVAL=1201', 'out_of_range'),
  rrule('FREQ=DAILY;COUNT=0', 'out_of_range'),
  rrule('FREQ=DAILY;COUNT=10001', 'out_of_range'),
  rrule('FREQ=DAILY;COUNT=2;UNTIL=20280101T000000Z', 'conflict'),
  rrule('FREQ=DAILY;UNTIL=tomorrow', 'syntax'),
  rrule('FREQ=DAILY;UNTIL=20270230T000000Z', 'out_of_range'),
  rrule('FREQ=DAILY;UNTIL=20270101T240000Z', 'out_of_range'),
  rrule('FREQ=FORTNIGHTLY', 'syntax'),
  rrule('INTERVAL=2', 'syntax'),
  rrule('FREQ=DAILY;FREQ=DAILY', 'conflict'),
  rrule('FREQ=DAILY;BYHOUR=1;BYHOUR=2', 'conflict'),
  rrule('FREQ=DAILY;BYEASTER=1', 'unsupported'),
  rrule('FREQ=DAILY;RSCALE=CHINESE', 'unsupported'),
  rrule('FREQ=DAILY;X-NAME=1', 'unsupported'),
  rrule('FREQ', 'syntax'),
  rrule('FREQ=DAILY;BYHOUR=', 'syntax'),
  rrule('FREQ=DAILY;BYHOUR=24', 'out_of_range'),
  rrule('FREQ=DAILY;BYHOUR=-1', 'out_of_range'),
  rrule('FREQ=DAILY;BYMINUTE=60', 'out_of_range'),
  rrule('FREQ=MONTHLY;BYMONTHDAY=0', 'out_of_range'),
  rrule('FREQ=MONTHLY;BYMONTHDAY=32', 'out_of_range'),
  rrule('FREQ=YEARLY;BYYEARDAY=367', 'out_of_range'),
  rrule('FREQ=YEARLY;BYWEEKNO=54', 'out_of_range'),
  rrule('FREQ=YEARLY;BYMONTH=13', 'out_of_range'),
  rrule('FREQ=MONTHLY;BYDAY=0MO', 'out_of_range'),
  rrule('FREQ=MONTHLY;BYDAY=XX', 'syntax'),
  rrule('FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0', 'out_of_range'),
  rrule('FREQ=MONTHLY;BYSETPOS=1', 'conflict'),
  rrule('FREQ=MONTHLY;BYWEEKNO=1', 'conflict'),
  rrule('FREQ=DAILY;BYYEARDAY=1', 'conflict'),
  rrule('FREQ=WEEKLY;BYMONTHDAY=1', 'conflict'),
  rrule('FREQ=WEEKLY;BYDAY=1MO', 'conflict'),
  rrule('FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO', 'conflict'),
  rrule('FREQ=DAILY;WKST=XX', 'syntax'),
  rrule('FREQ=DAILY;BYHOUR=９', 'syntax'),
  rrule('FREQ=DAILY\u0000', 'syntax'),
  rrule('', 'syntax'),
  rrule(`FREQ=DAILY;BYHOUR=${'9,'.repeat(20_000)}9`, 'too_long'),
  rrule('FREQ=SECONDLY', 'too_frequent'),
  rrule('FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30', 'never_fires'),
  rrule('FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', 'never_fires'),
  // The second slot is 86,401 days after the first.
  rrule('FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0;BYSECOND=0', 'too_complex', { start: '2026-01-01T00:00:00' }),
  // No year has these positions, and the search tries each year.
  rrule('FREQ=YEARLY;BYWEEKNO=5;BYMONTHDAY=12,17;BYSETPOS=3', 'never_fires'),
  rrule(7, 'wrong_type'),
  rrule(undefined, 'missing_field'),
  rrule('FREQ=DAILY', 'out_of_range', { start: '2027-01-01T24:00:00' }, 'start'),
  rrule('FREQ=DAILY', 'out_of_range', { start: '2027-02-30T09:00:00' }, 'start'),
  rrule('FREQ=DAILY', 'syntax', { start: 'yesterday' }, 'start'),
  rrule('FREQ=DAILY', 'wrong_type', { start: 5 }, 'start'),
  rrule('FREQ=DAILY', 'missing_field', { start: undefined }, 'start'),
  rrule('FREQ=DAILY', 'wrong_type', { exdates: '2027-01-02' }, 'exdates'),
  rrule('FREQ=DAILY', 'syntax', { exdates: ['2027-01-02', '2027-01-03', '2027-01-04', 'x'] }, 'exdates[3]'),
  rrule('FREQ=DAILY', 'wrong_type', { rdates: [5] }, 'rdates[0]'),
  rrule('FREQ=DAILY', 'too_long', { exdates: dates(1_001) }, 'exdates'),
  rrule('FREQ=DAILY', 'too_long', { rdates: dates(1_001) }, 'rdates'),
  rrule('FREQ=DAILY', 'too_long', { exdates: Array.from({ length: 1_000_000 }, () => 'x') }, 'exdates'),
  rrule('DTSTART:20270101T090000Z\nRRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY', 'unsupported', { start: undefined }),

  // Intervals.
  interval('P0D', 'out_of_range'),
  interval('PT0S', 'out_of_range'),
  interval('-P1D', 'syntax'),
  interval('P-1D', 'syntax'),
  interval('P', 'syntax'),
  interval('PT', 'syntax'),
  interval('P1DT', 'syntax'),
  interval('P1H', 'syntax'),
  interval('1 day', 'syntax'),
  interval('', 'syntax'),
  interval('P999999999Y', 'out_of_range'),
  interval(`P${'9'.repeat(400)}D`, 'syntax'),
  interval(`P${'9'.repeat(40_000)}D`, 'syntax'),
  interval('P１D', 'syntax'),
  interval('P1D\u0000', 'syntax'),
  interval(0, 'out_of_range'),
  interval(-60, 'out_of_range'),
  interval(Number.NaN, 'out_of_range'),
  interval(Infinity, 'out_of_range'),
  interval(1e300, 'out_of_range'),
  interval(30, 'too_frequent'),
  interval('PT59S', 'too_frequent'),
  interval(60n, 'wrong_type'),
  interval(true, 'wrong_type'),
  interval(undefined, 'missing_field'),
  interval('R5/2026-01-01T09:00:00Z', 'syntax', {}),
  interval('R5/P1D/2026-01-01T09:00:00Z', 'syntax', {}),
  interval('R0/2026-01-01T09:00:00Z/P1D', 'out_of_range', {}),
  interval('R-1/2026-01-01T09:00:00Z/P1D', 'syntax', {}),
  interval('R5/2026-02-30T09:00:00Z/P1D', 'out_of_range', {}),
  interval('R5/2026-01-01T09:00:00Z/P1D', 'conflict', { startAt: START_AT }, 'startAt'),
  interval('R5/2026-01-01T09:00:00Z/P1D', 'conflict', { maxRuns: 4 }, 'maxRuns'),
  interval('P1D', 'missing_field', {}, 'startAt'),
  // DST changes twice in each of 7,900 years.
  interval('P1Y', 'too_complex', { startAt: START_AT, maxRuns: 7900, timezone: 'Europe/Madrid' }, 'maxRuns'),

  // Once.
  once('2026-12-24T24:00:00Z', 'out_of_range'),
  once('2026-12-24T23:59:60Z', 'out_of_range'),
  once('2026-02-30T00:00:00Z', 'out_of_range'),
  once('2026-13-01T00:00:00Z', 'out_of_range'),
  once('+275760-09-13T00:00:00Z', 'syntax'),
  once('10000-01-01T00:00:00Z', 'syntax'),
  once('1969-12-31T23:59:59Z', 'out_of_range'),
  once('２０２６-12-24T18:00:00Z', 'syntax'),
  once('tomorrow', 'syntax'),
  once('', 'syntax'),
  once('x'.repeat(40_000), 'too_long'),
  once(1_766_599_200_000, 'wrong_type'),
  once(new Date(0), 'wrong_type'),
  once(undefined, 'missing_field'),
  once('2026-12-24T18:00:00', 'missing_field', {}, 'timezone'),
  once('2026-12-24T18:00:00[Mars/Olympus]', 'unknown_timezone'),
  once('2026-12-24T18:00:00+01:00[Europe/London]', 'conflict'),
  once('2026-12-24T18:00:00Z', 'unknown_field', { maxRuns: 2 }, 'maxRuns'),

  interval('PT6H', 'conflict', { startAt: START_AT, dst: { gap: 'skip' } }, 'dst'),
  once('2026-12-24T18:00:00Z', 'conflict', { dst: { gap: 'skip' } }, 'dst'),

  // Frequencies.
  frequency({ frequency: 'fortnightly' }, 'out_of_range', 'frequency'),
  frequency({ frequency: undefined }, 'missing_field', 'frequency'),
  frequency({ frequency: '__proto__' }, 'out_of_range', 'frequency'),
  frequency({ frequency: 'constructor' }, 'out_of_range', 'frequency'),
  frequency({ dayOfWeek: 7 }, 'out_of_range', 'dayOfWeek'),
  frequency({ dayOfWeek: -1 }, 'out_of_range', 'dayOfWeek'),
  frequency({ dayOfWeek: 1.5 }, 'out_of_range', 'dayOfWeek'),
  frequency({ dayOfWeek: '1' }, 'wrong_type', 'dayOfWeek'),
  frequency({ dayOfWeek: undefined }, 'missing_field', 'dayOfWeek'),
  frequency({ timeOfDay: '24:00' }, 'syntax', 'timeOfDay'),
  frequency({ timeOfDay: '9:00' }, 'syntax', 'timeOfDay'),
  frequency({ timeOfDay: '09:60' }, 'syntax', 'timeOfDay'),
  frequency({ timeOfDay: '０９:00' }, 'syntax', 'timeOfDay'),
  frequency({ timeOfDay: 900 }, 'wrong_type', 'timeOfDay'),
  frequency({ timeOfDay: undefined }, 'missing_field', 'timeOfDay'),
  frequency({ frequency: 'biweekly' }, 'missing_field', 'anchor'),
  frequency({ frequency: 'biweekly', anchor: 'soon' }, 'syntax', 'anchor'),

  // Zones.
  zoned('Mars/Olympus'),
  zoned('+05:30'),
  zoned('-04:00'),
  zoned('UTC+5'),
  zoned('GMT+5'),
  zoned('../etc/localtime'),
  zoned('../etc'),
  zoned('/etc/localtime'),
  zoned('America'),
  zoned('America/New York'),
  zoned('America/New_York\u0000'),
  zoned('America/New_York '),
  zoned('Ａmerica/New_York'),
  zoned(''),
  zoned('__proto__'),
  zoned('constructor'),
  zoned('local'),
  zoned('x'.repeat(10_000)),
  zoned(5, 'wrong_type'),
  zoned(null, 'wrong_type'),
  zoned({}, 'wrong_type'),
  zoned(Symbol('UTC'), 'wrong_type'),

  // Bounds and policies.
  bounded({ startAt: '2027-01-01T24:00:00Z' }, 'out_of_range', 'startAt'),
  bounded({ startAt: 'x' }, 'syntax', 'startAt'),
  bounded({ startAt: 0 }, 'wrong_type', 'startAt'),
  bounded({ endAt: '10000-01-01T00:00:00Z' }, 'syntax', 'endAt'),
  bounded({ startAt: '2028-01-01T00:00:00Z', endAt: '2027-01-01T00:00:00Z' }, 'conflict', 'endAt'),
  bounded({ maxRuns: 0, startAt: START_AT }, 'out_of_range', 'maxRuns'),
  bounded({ maxRuns: -1, startAt: START_AT }, 'out_of_range', 'maxRuns'),
  bounded({ maxRuns: 1.5, startAt: START_AT }, 'out_of_range', 'maxRuns'),
  bounded({ maxRuns: 10_001, startAt: START_AT }, 'out_of_range', 'maxRuns'),
  bounded({ maxRuns: '3', startAt: START_AT }, 'wrong_type', 'maxRuns'),
  bounded({ maxRuns: 3 }, 'missing_field', 'startAt'),
  bounded({ dst: 'shift' }, 'wrong_type', 'dst'),
  bounded({ dst: [] }, 'wrong_type', 'dst'),
  bounded({ dst: { gap: 'jump' } }, 'out_of_range', 'dst.gap'),
  bounded({ dst: { fold: 'toString' } }, 'out_of_range', 'dst.fold'),
  bounded({ dst: { overlap: 'first' } }, 'unknown_field', 'dst.overlap'),
  bounded({ seconds: 5 }, 'unknown_field', 'seconds'),
  bounded(JSON.parse('{"__proto__": {"polluted": true}}') as object, 'unknown_field', '__proto__'),

  // Input that is not an object, or has the wrong fields.
  whole('nothing', undefined, 'wrong_type'),
  whole('null', null, 'wrong_type'),
  whole('a string', '0 9 * * *', 'wrong_type'),
  whole('a number', 5, 'wrong_type'),
  whole('a BigInt', 5n, 'wrong_type'),
  whole('a symbol', Symbol('cron'), 'wrong_type'),
  whole('a function', () => ({ kind: 'cron' }), 'wrong_type'),
  whole('a list', [{ kind: 'cron', expression: '0 9 * * *' }], 'wrong_type'),
  whole('an empty object', {}, 'missing_field', 'kind'),
  whole('an unknown kind', { kind: 'lunar' }, 'out_of_range', 'kind'),
  whole('a kind from the prototype', { kind: '__proto__' }, 'out_of_range', 'kind'),
  whole('a kind that is a method', { kind: 'toString' }, 'out_of_range', 'kind'),
  whole('a kind that is an object', { kind: {} }, 'wrong_type', 'kind'),
  whole('a cyclic object', cyclic, 'unknown_field', 'self'),
  whole(
    'an object of inherited fields',
    Object.create({ kind: 'cron', expression: '0 9 * * *' }),
    'missing_field',
    'kind',
  ),
  whole('an object that cannot be read', throwing(), 'wrong_type'),
]

/** A proxy that throws at every access, as a revoked proxy does. */
function throwing(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
