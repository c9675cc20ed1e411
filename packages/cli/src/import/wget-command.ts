import { applyWords, flag, ignored, readData, readHeader, readTimeout, valueFlag, type Flag } from './command-flags.ts'
import { emptyCall, translateCall, type HttpCall, type Translated } from './http-call.ts'

const WGET_FLAGS: readonly Flag[] = [
  valueFlag('--method', (call, method) => void (call.method = method.toUpperCase())),
  valueFlag('--header', readHeader),
  valueFlag('--post-data --body-data', readData),
  valueFlag('-U --user-agent', (call, agent) => readHeader(call, `User-Agent: ${agent}`)),
  valueFlag('-T --timeout', readTimeout),
  valueFlag('-t --tries', readTries),
  flag('--spider', (call) => void (call.method = 'HEAD')),
  valueFlag('-O --output-document -o --output-file -P --directory-prefix --waitretry', ignored),
  flag('-q --quiet -nv --no-verbose -v --verbose --no-cache --delete-after --retry-connrefused', ignored),
]

/** A call of wget, without the word `wget`, as an HTTP target. */
export function translateWget(words: readonly string[]): Translated {
  const call = emptyCall()
  const fault = applyWords(call, words, WGET_FLAGS)
  return fault === undefined ? translateCall(call, 'wget') : { ok: false, reason: `wget: ${fault}` }
}

function readTries(call: HttpCall, text: string): string | undefined {
  if (!/^[1-9]\d{0,3}$/.test(text)) return `expected a number of tries from 1 on, got "${text}"`
  call.maxAttempts = Number(text)
  return undefined
}
