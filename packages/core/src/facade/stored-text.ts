import { INSTALLATION_SUBJECT } from '../caller.ts'

const SUBJECT = /^[a-z_]+:[^\s]{1,200}$/

/** Whether Postgres can keep a text, and gives it back the same. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

/** Whether a text names somebody whom others may name too: not the installation, nor Carillon's own parts. */
export function isNameableSubject(text: string): boolean {
  return isSubject(text) && text !== INSTALLATION_SUBJECT && !text.startsWith('system:')
}

/** Whether a text names somebody by type and name, such as `user:alice` (E-29). */
function isSubject(text: string): boolean {
  return SUBJECT.test(text) && isStorable(text)
}
