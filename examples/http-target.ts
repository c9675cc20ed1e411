/**
 * A service that Carillon calls. A call may come twice, for example after a timeout, but then with the same Idempotency-Key. So the
 * service does the work once per slot, and answers the second call with the first one's result.
 *
 * Run: `node examples/http-target.ts`, and then: `npx carillon schedules create Digest --cron "0 9 * * 1-5"
 * --url http://127.0.0.1:9000/digest --payload '{"list":"a"}'`
 */
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'

const answers = new Map<string, Promise<{ sent: number }>>()

const service = createServer((request, response) => {
  const key = String(request.headers['idempotency-key'])
  const answer = answers.get(key) ?? json(request).then((payload) => sendDigest(key, payload))
  answers.set(key, answer)
  answer.then(
    (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})

function sendDigest(key: string, payload: unknown): { sent: number } {
  process.stdout.write(`digest for ${key}: ${JSON.stringify(payload)}\n`)
  return { sent: 3 }
}

service.listen(Number(process.env['PORT'] ?? 9000), '127.0.0.1', () => {
  process.stdout.write(`listening on ${JSON.stringify(service.address())}\n`)
})
