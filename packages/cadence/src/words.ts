// What the API contract needs without the code that computes slots: the closed lists and limits of cadences, and how a message
// shows what it found.
export { foundName, foundText } from './input/found.ts'
export { CADENCE_LIMITS } from './limits.ts'
export { CADENCE_KINDS, FREQUENCIES } from './spec.ts'
export { DST_EFFECTS, FOLD_POLICIES, GAP_POLICIES, DST_WARNING_CODES } from './time/dst-policy.ts'
