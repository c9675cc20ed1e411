export type { Cadence, SlotsOptions } from './cadence.ts'
export type { DstPolicy, FoldPolicy, GapPolicy } from './dst-policy.ts'
export { parse } from './parse.ts'
export type { ParseOptions, ParseResult } from './parse.ts'
export type { Problem, ProblemCode } from './problem.ts'
export type {
  CadenceKind,
  CadenceSpec,
  CronSpec,
  DstSpec,
  FrequencySpec,
  IntervalSpec,
  OnceSpec,
  RRuleSpec,
} from './spec.ts'
export { CADENCE_KINDS } from './spec.ts'
export type { Warning } from './warning.ts'
