export type { Cadence, SlotsOptions } from './cadence.ts'
export { PROBLEM_CODES } from './input/problem.ts'
export type { Problem, ProblemCode } from './input/problem.ts'
export { CADENCE_LIMITS } from './limits.ts'
export { parse } from './parse.ts'
export type { ParseOptions, ParseResult } from './parse.ts'
export { SearchLimitError } from './rules/step-budget.ts'
export { CADENCE_KINDS, FREQUENCIES } from './spec.ts'
export type {
  CadenceInput,
  CadenceKind,
  CadenceSpec,
  CronSpec,
  Frequency,
  FrequencySpec,
  IntervalSpec,
  OnceSpec,
  RRuleSpec,
} from './spec.ts'
export { FOLD_POLICIES, GAP_POLICIES } from './time/dst-policy.ts'
export type { DstPolicy, DstSpec, FoldPolicy, GapPolicy } from './time/dst-policy.ts'
export type { Warning } from './warning.ts'
