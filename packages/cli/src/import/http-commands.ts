import { translateCall, type Flag, type HttpCall, type Translated } from './http-call.ts'

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
  flag('-L --location', (call) => void call.notes.push('redirects are never followed, so -L of curl is ignored')),
  valueFlag('-o --output -w --write-out --connect-timeout --retry-delay --retry-max-time', ignore),
  flag('-s --silent -S --show-error -f --fail --fail-with-body -v --verbose -i --include', ignore),
  flag('-N --no-buffer -# --progress-bar --compressed -g --globoff -4 --ipv4 -6 --ipv6', ignore),
  flag('--retry-connrefused --retry-all-errors --http1.1 --http2 --no-progress-meter', ignore),
]

const WGET_FLAGS: readonly Flag[] = [
  valueFlag('--method', (call, method) => void (call.method = method.toUpperCase())),
  valueFlag('--header', readHeader),
  valueFlag('--post-data --body-data', readData),
  valueFlag('-U --user-agent', (call, agent) => readHeader(call, `User-Agent: ${agent}`)),
  valueFlag('-T --timeout', readTimeout),
  valueFlag('-t --tries', readTries),
  flag('--spider', (call) => void (call.method = 'HEAD')),
  valueFlag('-O --output-document -o --output-file -P --directory-prefix --waitretry', ignore),
  flag('-q --quiet -nv --no-verbose -v --verbose --no-cache --delete-after --retry-connrefused', ignore),
]

/** Reads the words after `curl` as an HTTP target. */
export function translateCurl(words: readonly string[]): Translated {
  return translateCall('curl', words, CURL_FLAGS)
}

/** Reads the words after `wget` as an HTTP target. */
export function translateWget(words: readonly string[]): Translated {
  return translateCall('wget', words, WGET_FLAGS)
}

function flag(names: string, effect: Flag['effect']): Flag {
  return { names: names.split(' '), takesValue: false, effect }
}

function valueFlag(names: string, effect: Flag['effect']): Flag {
  return { names: names.split(' '), takesValue: true, effect }
}

/** The effect of flags that change only what curl or wget prints, or how it connects: none. */
function ignore(): undefined {
  return undefined
}

function readHeader(call: HttpCall, text: string): string | undefined {
  const [, name, value = ''] = /^([^\s:]+):\s*(.*)$/.exec(text) ?? []
  if (name === undefined) return `expected a header such as "Accept: text/plain", got "${text}"`
  call.headers[name] = value
  return undefined
}

function readData(call: HttpCall, text: string): string | undefined {
  if (text.startsWith('@')) return `expected data in the command itself, got the file ${text.slice(1)}`
  call.data.push(text)
  return undefined
}

function readTimeout(call: HttpCall, text: string): string | undefined {
  const seconds = Math.ceil(Number(text))
  if (!Number.isFinite(seconds) || text === '') return `expected a number of seconds, got "${text}"`
  call.timeoutSeconds = seconds
  return undefined
}

function readRetries(call: HttpCall, text: string): string | undefined {
  if (!/^\d{1,4}$/.test(text)) return `expected a number of retries, got "${text}"`
  call.maxAttempts = Number(text) + 1
  return undefined
}

function readTries(call: HttpCall, text: string): string | undefined {
  if (!/^[1-9]\d{0,3}$/.test(text)) return `expected a number of tries of 1 or more, got "${text}"`
  call.maxAttempts = Number(text)
  return undefined
}
