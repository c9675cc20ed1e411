import { describe, expect, test } from 'vitest'

import { splitShellWords } from './shell-words.ts'

describe('a shell command', () => {
  test.each<[string, string[]]>([
    ['curl  -s\thttp://a', ['curl', '-s', 'http://a']],
    [`curl -H 'A: b c' -d "{\\"x\\": 1}"`, ['curl', '-H', 'A: b c', '-d', '{"x": 1}']],
    [`curl 'it'"'"'s'`, ['curl', "it's"]],
    ['curl a\\ b', ['curl', 'a b']],
    ['curl "" x', ['curl', '', 'x']],
    ['curl http://a/?q=1 # nightly', ['curl', 'http://a/?q=1']],
    [`curl '$HOME' "a\\$b"`, ['curl', '$HOME', 'a$b']],
    ['curl http://a/#part', ['curl', 'http://a/#part']],
    ["curl -d '`'", ['curl', '-d', '`']],
  ])('%s is split as a shell splits it', (command, words) => {
    expect(splitShellWords(command)).toEqual({ words, outputs: [], shellOnly: null })
  })

  test.each<[string, string[]]>([
    ['curl x >/dev/null 2>&1', ['/dev/null']],
    ['curl x > /dev/null', ['/dev/null']],
    ['curl x >>/var/log/a.log 2>>/var/log/b.log', ['/var/log/a.log', '/var/log/b.log']],
    ['curl x &>/dev/null', ['/dev/null']],
  ])('%s is split without its redirections', (command, outputs) => {
    expect(splitShellWords(command)).toEqual({ words: ['curl', 'x'], outputs, shellOnly: null })
  })

  test.each<[string, string]>([
    ['a | b', '|'],
    ['a && b', '&&'],
    ['a || b', '||'],
    ['a; b', ';'],
    ['a < b', '<'],
    ['a &', '&'],
    ['a http://x/?a=1&b=2', '&'],
    ['a $HOME', '$H'],
    ['a $(date)', '$('],
    ['a "$(date)"', '$('],
    ['a `date`', '`'],
    ['a "`date`"', '`'],
    ['(a)', '('],
    ['a "b', 'a quote without its end'],
    ["a 'b", 'a quote without its end'],
  ])('%s needs a shell: %s', (command, shellOnly) => {
    expect(splitShellWords(command).shellOnly).toBe(shellOnly)
  })
})
