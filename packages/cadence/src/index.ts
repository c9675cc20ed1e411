export type { CadenceInput } from './cadence-input.ts'
export type { Cadence, SlotsOptions } from './cadence.ts'
export { FOLD_POLICIES, GAP_POLICIES } from './dst-policy.ts'
export type { DstPolicy, FoldPolicy, GapPolicy } from './dst-policy.ts'
export { LIMITS } from './limits.ts'
export { parse } from './parse.ts'
export type { ParseOptions, ParseResult } from './parse.ts'
export { PROBLEM_CODES } from './problem.ts'
export type { Problem, ProblemCode } from './problem.ts'
export { CADENCE_KINDS, FREQUENCIES } from './spec.ts'
export type {
  CadenceKind,
  CadenceSpec,
  CronSpec,
  DstSpec,
  Frequency,
  FrequencySpec,
  IntervalSpec,
  OnceSpec,
  RRuleSpec,
} from './spec.ts'
export { SearchLimitError } from './step-budget.ts'
export type { Warning } from './warning.ts'
