/**
 * Creates a schedule in a running service and follows its events, with the typed client.
 *
 * Run, while `npm start` runs in another shell: `CARILLON_API_KEY=$(cat .carillon/admin.key) node examples/client.ts`
 */
import { createClient } from '@carillon/api'

const url = process.env['CARILLON_URL'] ?? 'http://127.0.0.1:7400'
const carillon = createClient(url, process.env['CARILLON_API_KEY'] ?? '')

const { items } = await carillon.schedules.list({ state: 'active' })
for (const { name, description, nextSlotAt } of items) print(`${name}: ${description}, next ${nextSlotAt ?? 'never'}`)

const { id } = await carillon.schedules.create({
  name: 'From a program',
  cadence: { kind: 'once', at: new Date(Date.now() + 2000).toISOString() },
  target: { kind: 'http', url: `${url}/healthz`, method: 'GET' },
})
for await (const { event, data } of carillon.events()) {
  if (event !== 'run' || data.run.scheduleId !== id) continue
  print(`${data.change}: ${data.run.explanation}`)
  if (data.change === 'succeeded') break
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
