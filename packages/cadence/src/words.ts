// The closed lists and limits of cadences, without the code that computes slots: what a contract needs to describe a cadence.
export { LIMITS } from './limits.ts'
export { CADENCE_KINDS, FREQUENCIES } from './spec.ts'
export { DST_EFFECTS, FOLD_POLICIES, GAP_POLICIES, WARNING_CODES } from './time/dst-policy.ts'
