import { applyWords, flag, ignored, readData, readHeader, readTimeout, valueFlag, type Flag } from './command-flags.ts'
import { emptyCall, translateCall, type HttpCall, type Translated } from './http-call.ts'

const CURL_FLAGS: readonly Flag[] = [
  valueFlag('-X --request', (call, method) => void (call.method = method.toUpperCase())),
  valueFlag('-H --header', readHeader),
  valueFlag('-d --data --data-ascii --data-raw --data-binary', readData),
  valueFlag('--json', readData),
  valueFlag('-A --user-agent', (call, agent) => readHeader(call, `User-Agent: ${agent}`)),
  valueFlag('-m --max-time', readTimeout),
  valueFlag('--url', (call, url) => void call.urls.push(url)),
  valueFlag('--retry', readRetries),
  flag('-I --head', (call) => void (call.method = 'HEAD')),
  flag('-L --location', (call) => void call.notes.push('redirects are never followed, so curl’s -L is left out')),
  valueFlag('-o --output -w --write-out --connect-timeout --retry-delay --retry-max-time', ignored),
  flag('-s --silent -S --show-error -f --fail --fail-with-body -v --verbose -i --include', ignored),
  flag('-N --no-buffer -# --progress-bar --compressed -g --globoff -4 --ipv4 -6 --ipv6', ignored),
  flag('--retry-connrefused --retry-all-errors --http1.1 --http2 --no-progress-meter', ignored),
]

/** A call of curl, without the word `curl`, as an HTTP target. */
export function translateCurl(words: readonly string[]): Translated {
  const call = emptyCall()
  const fault = applyWords(call, words, CURL_FLAGS)
  return fault === undefined ? translateCall(call, 'curl') : { ok: false, reason: `curl: ${fault}` }
}

function readRetries(call: HttpCall, text: string): string | undefined {
  if (!/^\d{1,4}$/.test(text)) return `expected a number of retries, got "${text}"`
  call.maxAttempts = Number(text) + 1
  return undefined
}
