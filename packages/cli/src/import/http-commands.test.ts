import { describe, expect, test } from 'vitest'

import { translateCurl, translateWget } from './http-commands.ts'
import { splitShellWords } from './shell-words.ts'

function translate(command: string) {
  const [program, ...words] = splitShellWords(command).words
  return program === 'curl' ? translateCurl(words) : translateWget(words)
}

describe('translating curl and wget', () => {
  test.each<[string, object]>([
    ['curl http://a/x', { target: { url: 'http://a/x', method: 'GET' } }],
    ['curl a.example', { target: { url: 'http://a.example', method: 'GET' } }],
    ['curl -fsS --url https://a', { target: { url: 'https://a', method: 'GET' } }],
    ['curl -X PUT http://a', { target: { url: 'http://a', method: 'PUT' } }],
    ['curl -sXDELETE http://a', { target: { url: 'http://a', method: 'DELETE' } }],
    ['curl -I http://a', { target: { url: 'http://a', method: 'HEAD' } }],
    [`curl http://a -d '{"x":1}'`, { target: { url: 'http://a', method: 'POST', payload: { x: 1 } } }],
    [`curl http://a --json '[1]'`, { target: { url: 'http://a', method: 'POST', payload: [1] } }],
    [`curl -X PATCH --data-raw 'null' http://a`, { target: { url: 'http://a', method: 'PATCH', payload: null } }],
    [
      `curl -H'A: 1' --header "B: 2: 3" http://a`,
      { target: { url: 'http://a', method: 'GET', headers: { A: '1', B: '2: 3' } } },
    ],
    ['curl -A robot http://a', { target: { url: 'http://a', method: 'GET', headers: { 'User-Agent': 'robot' } } }],
    ['curl -m 2.5 http://a', { target: { url: 'http://a', method: 'GET', timeoutSeconds: 3 } }],
    [
      'curl --retry 3 --retry-delay 5 http://a',
      { target: { url: 'http://a', method: 'GET' }, policy: { retry: { maxAttempts: 4 } } },
    ],
    ['curl -o /dev/null -w "%{http_code}" -- http://a', { target: { url: 'http://a', method: 'GET' } }],
    ['wget -qO- http://a', { target: { url: 'http://a', method: 'GET' } }],
    ['wget -q -O /dev/null http://a', { target: { url: 'http://a', method: 'GET' } }],
    ['wget --spider --timeout=10 http://a', { target: { url: 'http://a', method: 'HEAD', timeoutSeconds: 10 } }],
    [
      `wget --method=PUT --body-data='{}' --header='A: 1' http://a`,
      { target: { url: 'http://a', method: 'PUT', headers: { A: '1' }, payload: {} } },
    ],
    [
      `wget --post-data '{"a":[]}' --tries=2 http://a`,
      { target: { url: 'http://a', method: 'POST', payload: { a: [] } }, policy: { retry: { maxAttempts: 2 } } },
    ],
  ])('the call %s becomes an HTTP target', (command, { target, policy }: { target?: object; policy?: object }) => {
    expect(translate(command)).toMatchObject({
      ok: true,
      content: { target: { kind: 'http', ...target }, ...(policy === undefined ? {} : { policy }) },
    })
    expect(Object.keys((translate(command) as { content: { target: object } }).content.target).toSorted()).toEqual(
      Object.keys({ kind: 'http', ...target }).toSorted(),
    )
  })

  test.each<[string, string]>([
    ['curl', 'expected curl with one URL, got 0'],
    ['curl http://a http://b', 'expected curl with one URL, got 2'],
    ['curl -u me:secret http://a', 'curl: expected flags that a schedule can express, got -u: remove it'],
    ['curl -sk http://a', 'curl: expected flags that a schedule can express, got -k: remove it'],
    ['curl --proxy http://p http://a', 'curl: expected flags that a schedule can express, got --proxy: remove it'],
    ['curl -d a=b http://a', 'expected JSON as the data of curl, got a=b'],
    ['curl -d @body.json http://a', 'curl: expected data in the command itself, got the file body.json'],
    ['curl -H nonsense http://a', 'curl: expected a header such as "Accept: text/plain", got "nonsense"'],
    ['curl http://a -X', 'curl: expected a value after -X, got none'],
    ['curl -m soon http://a', 'curl: expected a number of seconds, got "soon"'],
    ['curl --retry often http://a', 'curl: expected a number of retries, got "often"'],
    [
      'wget --no-check-certificate http://a',
      'wget: expected flags that a schedule can express, got --no-check-certificate: remove it',
    ],
    ['wget --tries=0 http://a', 'wget: expected a number of tries of 1 or more, got "0"'],
  ])('the call %s is refused: %s', (command, reason) => {
    expect(translate(command)).toEqual({ ok: false, reason })
  })

  test('-L of curl is ignored with a note, because redirects are never followed', () => {
    expect(translate('curl -fsSL http://a')).toMatchObject({ ok: true, notes: [expect.stringContaining('redirects')] })
  })
})
