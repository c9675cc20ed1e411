// What the API contract needs to describe a cadence: its closed lists and limits, without the code that computes slots.
export { CADENCE_LIMITS } from './limits.ts'
export { CADENCE_KINDS, FREQUENCIES } from './spec.ts'
export { DST_EFFECTS, FOLD_POLICIES, GAP_POLICIES, DST_WARNING_CODES } from './time/dst-policy.ts'
