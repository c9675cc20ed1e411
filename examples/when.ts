/**
 * Prints when a rule comes due. Run: `node examples/when.ts "30 2 * * *" America/New_York`.
 *
 * The first argument is a cron expression, or a cadence as JSON; the second a time zone, the third an instant to look from.
 */
import { parse } from '@carillon/cadence'

const SLOTS_SHOWN = 5

const [rule = '0 9 * * 1-5', timezone = 'Europe/Madrid', from] = process.argv.slice(2)
const now = from === undefined ? Date.now() : Date.parse(from)
const input: unknown = rule.trimStart().startsWith('{')
  ? JSON.parse(rule)
  : { kind: 'cron', expression: rule, timezone }

const parsed = parse(input, { now })
if (parsed.ok) {
  const { cadence } = parsed
  const slots = cadence.slots(now + 1, { limit: SLOTS_SHOWN })
  const warnings = cadence.warnings(now)
  print([
    cadence.describe(),
    '',
    ...slots.map((slot) => `  ${new Date(slot).toISOString()}  ${cadence.local(slot)}`),
    ...(slots.length === 0 ? ['  It does not come due any more.'] : []),
    '',
    ...warnings.map(({ message }) => `  ${message}`),
    ...(warnings.length === 0 ? ['  No change of the clocks touches it in the next two years.'] : []),
  ])
} else {
  print(parsed.problems.map(({ field, message }) => `${field}: ${message}`))
  process.exitCode = 1
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}
