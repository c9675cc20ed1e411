/** What somebody may do in a project, in the words of the database (`carillon.role`): a member reads, an admin writes. */
export const ROLES = ['member', 'admin'] as const

export type Role = (typeof ROLES)[number]
