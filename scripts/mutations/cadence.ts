import type { Mutation } from './mutation.ts'

/** Each of these changes must make a test fail: `npm run test:mutations -- cadence`. */
export const CADENCE_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'W2: with fold first, only the first pass of a repeated hour has slots',
    file: 'slots/slot-walk.ts',
    from: "isFold && this.#dst.fold === 'first' ? before : offset",
    to: 'offset',
  },
  {
    guard: 'W2: with fold second, only the second pass of a repeated hour has slots',
    file: 'slots/slot-walk.ts',
    from: "isFold && this.#dst.fold === 'second' ? after : offset",
    to: 'offset',
  },
  {
    guard: 'W1: a wall time in a gap moves to the end of the gap',
    file: 'slots/slot-walk.ts',
    from: 'return skipped !== null && skipped < start + offset',
    to: 'return false',
  },
  {
    guard: 'W4: next searches the last two days of a segment before it jumps ahead',
    file: 'slots/slot-walk.ts',
    from: 'const isTailSeen = segment.end - low > REACH_MS',
    to: 'const isTailSeen = true',
  },
  {
    guard: 'W4: previous searches the first two days of a segment before it jumps back',
    file: 'slots/slot-walk.ts',
    from: 'const isHeadSeen = high - segment.start > REACH_MS',
    to: 'const isHeadSeen = true',
  },
  {
    guard: 'two restricted day fields of a cron expression match either',
    file: 'cron/cron-days.ts',
    from: 'const isEither = !dayOfMonth.isStar && !dayOfWeek.isStar',
    to: 'const isEither = false',
  },
  {
    guard: 'next is strictly later than the instant given',
    file: 'cadence.ts',
    from: 'const from = Math.max(after, this.#from - 1)',
    to: 'const from = Math.max(after - 1, this.#from - 1)',
  },
  {
    guard: 'endAt ends a cadence that maxRuns would not end yet',
    file: 'check-draft.ts',
    from: 'if (slot === null || slot > to) return to',
    to: 'if (slot === null) return to',
  },
  {
    guard: 'UNTIL as an instant ends the rule',
    file: 'slots/slot-source.ts',
    from: 'slot === null || slot > this.#last ? null : slot',
    to: 'slot',
  },
  {
    guard: 'exdates remove instants',
    file: 'slots/slot-source.ts',
    from: '} while (slot !== null && this.#removed.has(slot))',
    to: '} while (slot === 0)',
  },
  {
    guard: 'slots that are too close are rejected',
    file: 'check-draft.ts',
    from: 'if (close !== undefined) {',
    to: "if (close === '') {",
  },
  {
    guard: 'a rule without slots is rejected',
    file: 'check-draft.ts',
    from: 'if (first === null || first > to) return undefined',
    to: 'if (first === null || first > to) return to',
  },
  {
    guard: 'a rule that becomes too sparse after its first slot is rejected',
    file: 'check-draft.ts',
    from: '  probeNextSlots(source, first, budget)\n',
    to: '',
  },
  {
    guard: 'an input has a bounded number of fields',
    file: 'input/input-reader.ts',
    from: 'FIELDS_MAX = 100',
    to: 'FIELDS_MAX = 1e9',
  },
  {
    guard: 'the list of problems is bounded',
    file: 'limits.ts',
    from: 'problems: 50,',
    to: 'problems: 1e9,',
  },
  {
    guard: 'a search is bounded',
    file: 'rules/step-budget.ts',
    from: 'if (this.#left < 0)',
    to: 'if (this.#left < -1e15)',
  },
  {
    guard: 'a clamped end of month does not shift the later slots',
    file: 'rules/calendar-interval-rule.ts',
    from: 'Math.min(date.day, daysInMonth(year, month))',
    to: 'Math.min(28, date.day)',
  },
  {
    guard: 'week 1 contains 4 January',
    file: 'rrule/rrule-days.ts',
    from: 'dayNumberOf(year, 1, 4)',
    to: 'dayNumberOf(year, 1, 1)',
  },
  {
    guard: 'zone years start where no zone changes its clocks',
    file: 'time/zone.ts',
    from: 'YEAR_START_MONTH = 11',
    to: 'YEAR_START_MONTH = 3',
  },
]
