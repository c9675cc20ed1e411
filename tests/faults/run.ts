import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { examplesOf, failuresOf, summaryOf, tableOf } from './report.ts'
import { runScenario, type ScenarioResult } from './run-scenario.ts'
import { readSettings, type Scenario } from './scenario.ts'
import { cuts, silences } from './scenarios/connections.ts'
import { crashes, kills, mix } from './scenarios/processes.ts'

const SCENARIOS: Readonly<Record<string, Scenario>> = { cuts, crashes, kills, silences, mix }
const BY_DEFAULT = ['cuts', 'crashes', 'kills', 'silences']

const { values, positionals } = parseArgs({ options: { json: { type: 'string' } }, allowPositionals: true })
const settings = readSettings(process.env)
const names = positionals.length === 0 ? BY_DEFAULT : positionals
const unknown = names.filter((name) => !(name in SCENARIOS))
if (unknown.length > 0) {
  throw new RangeError(`unknown scenario ${unknown.join(', ')}: expected ${Object.keys(SCENARIOS).join(', ')}`)
}

const startedAt = performance.now()
say('', `FAULT_SEED=${settings.seed}`)
const results: ScenarioResult[] = []
for (const name of names) {
  const scenario = SCENARIOS[name]
  if (scenario === undefined) continue
  say(name, scenario.title)
  const result = await runScenario(name, scenario, settings, (text) => say(name, text))
  results.push(result)
  if (result.inflicted.plan !== undefined) process.stdout.write(`\n${tableOf(result.inflicted.plan)}\n\n`)
  const duringFaults = JSON.stringify(result.audit.earlierKinds)
  if (duringFaults !== '{}') say(name, `audits in the middle of the faults had found ${duringFaults}`)
  for (const problem of examplesOf([...result.inflicted.invalid, ...failuresOf(result)])) say(name, `✗ ${problem}`)
}
process.stdout.write(`\n${summaryOf(results)}\n`)
if (values.json !== undefined) {
  writeFileSync(values.json, `${JSON.stringify({ settings, results: results.map(plain) }, null, 2)}\n`)
}
const failures = results.flatMap(failuresOf)
const invalid = results.flatMap(({ inflicted }) => inflicted.invalid)
if (failures.length > 0) process.stdout.write(`\nFAILED: ${failures.length} findings; FAULT_SEED=${settings.seed}\n`)
else if (invalid.length > 0) process.stdout.write(`\nINVALID: ${invalid.length} reasons, such as ${invalid[0]}\n`)
else process.stdout.write('\nOK\n')
process.exitCode = failures.length > 0 ? 1 : invalid.length > 0 ? 2 : 0

/** The result as JSON, with the plan as its rows. */
function plain({ inflicted: { plan, ...inflicted }, ...result }: ScenarioResult): object {
  return { ...result, inflicted: { ...inflicted, statements: plan?.rows ?? [] } }
}

function say(scenario: string, text: string): void {
  const elapsed = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)
  process.stdout.write(`${elapsed} s  ${scenario.padEnd(9)} ${text}\n`)
}
