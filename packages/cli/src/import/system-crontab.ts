/** Users that the lines of a system crontab usually name. None is the name of a program. */
const USUAL_USERS = ['root', 'www-data', 'nobody', 'daemon', 'ubuntu']

/** Programs that run the command that follows them, as a user would seem to. */
const RUNNERS = 'sudo doas nice ionice time timeout env exec nohup setsid chronic cronic run-one command'.split(' ')

/** Whether a command begins with a user, as in `/etc/crontab`: one of the usual ones, or a name before a call. */
export function isUser(first: string, second: string | undefined): boolean {
  if (second === undefined) return false
  const isCall = /^(?:\S*\/)?(?:curl|wget)$/.test(second)
  const isName = /^[a-z_][\w-]*$/.test(first) && !RUNNERS.includes(first) && !/^(?:curl|wget)$/.test(first)
  return USUAL_USERS.includes(first) || (isCall && isName)
}

export function userReason(user: string): string {
  const advice = 'this looks like a system crontab, whose sixth field is a user: take it out'
  return `expected five fields and a command, got ${user} before the command: ${advice}`
}
