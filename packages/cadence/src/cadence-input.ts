import type { CronSpec, FrequencySpec, IntervalSpec, OnceSpec, RRuleSpec } from './spec.ts'

/** Makes the fields optional that `parse` fills in. */
type Open<Spec, Filled extends keyof Spec> = Omit<Spec, Filled> & Partial<Pick<Spec, Filled>>

/** What `parse` reads: a spec whose defaults and anchors may be left out. Use it for type-checked literals. */
export type CadenceInput =
  | Open<OnceSpec, 'timezone'>
  | Open<CronSpec, 'timezone'>
  | Open<RRuleSpec, 'start' | 'timezone'>
  | (Omit<Open<IntervalSpec, 'timezone'>, 'every'> & { readonly every: number | string })
  | Open<FrequencySpec, 'timezone'>
