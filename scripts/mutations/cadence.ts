import type { Mutation } from './mutation.ts'

/** Each of these must turn a test red: `npm run test:mutations`. */
export const CADENCE_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'W2: the first pass alone counts where the policy says so',
    file: 'slot-walk.ts',
    from: "isFold && this.#dst.fold === 'first' ? before : offset",
    to: 'offset',
  },
  {
    guard: 'W2: the second pass alone counts where the policy says so',
    file: 'slot-walk.ts',
    from: "isFold && this.#dst.fold === 'second' ? after : offset",
    to: 'offset',
  },
  {
    guard: 'W1: what a gap hides is shifted to its end',
    file: 'slot-walk.ts',
    from: 'return hidden !== null && hidden < start + offset',
    to: 'return false',
  },
  {
    guard: 'W4: a fold is looked at before anything is passed over',
    file: 'slot-walk.ts',
    from: 'const isTailSeen = segment.end - low > REACH_MS',
    to: 'const isTailSeen = true',
  },
  {
    guard: 'W4: the same, looking back',
    file: 'slot-walk.ts',
    from: 'const isHeadSeen = high - segment.start > REACH_MS',
    to: 'const isHeadSeen = true',
  },
  {
    guard: 'two restricted day fields mean either',
    file: 'cron/cron-days.ts',
    from: 'const isEither = !dayOfMonth.isStar && !dayOfWeek.isStar',
    to: 'const isEither = false',
  },
  {
    guard: 'next is strictly later',
    file: 'cadence.ts',
    from: 'const from = Math.max(after, this.#from - 1)',
    to: 'const from = Math.max(after - 1, this.#from - 1)',
  },
  {
    guard: 'endAt ends what maxRuns would not',
    file: 'draft-checks.ts',
    from: 'if (slot === null || slot > to) return to',
    to: 'if (slot === null) return to',
  },
  {
    guard: 'UNTIL as an instant ends the rule',
    file: 'bounded-source.ts',
    from: 'slot === null || slot > this.#last ? null : slot',
    to: 'slot',
  },
  {
    guard: 'exdates take out instants',
    file: 'rrule/amended-source.ts',
    from: '} while (slot !== null && this.#removed.has(slot))',
    to: '} while (slot === 0)',
  },
  {
    guard: 'slots too close are refused',
    file: 'parse.ts',
    from: 'if (close !== undefined) {',
    to: "if (close === '') {",
  },
  {
    guard: 'a rule without slots is refused',
    file: 'draft-checks.ts',
    from: 'if (first === null || first > to) return undefined',
    to: 'if (first === null || first > to) return to',
  },
  {
    guard: 'a rule that thins out is refused',
    file: 'draft-checks.ts',
    from: '  probe(source, first, budget)\n',
    to: '',
  },
  { guard: 'an input has few fields', file: 'input-reader.ts', from: 'FIELDS_MAX = 100', to: 'FIELDS_MAX = 1e9' },
  { guard: 'a refusal tells few problems', file: 'problem.ts', from: 'PROBLEMS_MAX = 50', to: 'PROBLEMS_MAX = 1e9' },
  { guard: 'a search ends', file: 'step-budget.ts', from: 'if (this.#left < 0)', to: 'if (this.#left < -1e15)' },
  {
    guard: 'a clamped month end does not pull the later ones down',
    file: 'calendar-interval-rule.ts',
    from: 'Math.min(date.day, daysInMonth(year, month))',
    to: 'Math.min(28, date.day)',
  },
  {
    guard: 'week 1 is the one with 4 January',
    file: 'rrule/rrule-days.ts',
    from: 'dayNumberOf(year, 1, 4)',
    to: 'dayNumberOf(year, 1, 1)',
  },
  { guard: 'years are cut where no clock changes', file: 'zone.ts', from: 'CUT_MONTH = 11', to: 'CUT_MONTH = 3' },
]
