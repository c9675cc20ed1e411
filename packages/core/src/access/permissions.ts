export { findRemoved, nameOfMember, readPermissions } from './store/permissions.ts'
export type { Permissions, RunOfGrant } from './store/permissions.ts'
