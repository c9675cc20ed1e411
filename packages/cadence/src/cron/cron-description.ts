import cronstrue from 'cronstrue'

/** A cron expression in plain English, 24-hour clock. */
export function describeCron(expression: string): string {
  return cronstrue.toString(expression, { use24HourTimeFormat: true })
}
