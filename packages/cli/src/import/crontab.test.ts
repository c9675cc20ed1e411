import { describe, expect, test } from 'vitest'

import { parseCrontab } from './crontab.ts'

const HOOK = 'https://hooks.example.com/run'

function parse(text: string, hook?: string) {
  return parseCrontab(text, { timezone: 'UTC', hook })
}

function namesIn(text: string): string[] {
  return parse(text).entries.map(({ input }) => input.name)
}

describe('a crontab', () => {
  test('becomes schedules, each with its line number', () => {
    const { entries, refusals, notes } = parse(
      ['# Digest', '0 9 * * 1-5  curl http://a/x', '', '@daily wget -q http://b', ''].join('\n'),
    )

    expect({ refusals, notes }).toEqual({ refusals: [], notes: [] })
    expect(entries).toEqual([
      {
        place: 'line 2',
        input: {
          name: 'Digest',
          cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'UTC' },
          target: { kind: 'http', url: 'http://a/x', method: 'GET' },
        },
        pausedReason: null,
        skippedSlots: [],
      },
      {
        place: 'line 4',
        input: {
          name: 'wget -q http://b',
          cadence: { kind: 'cron', expression: '@daily', timezone: 'UTC' },
          target: { kind: 'http', url: 'http://b', method: 'GET' },
        },
        pausedReason: null,
        skippedSlots: [],
      },
    ])
  })

  test.each([
    ['a tab between the fields', '0\t9\t*\t*\t1-5\tcurl http://a', '0 9 * * 1-5'],
    ['spaces before', '   */5 * * * * curl http://a', '*/5 * * * *'],
    ['names of months and days', '0 9 * jan mon-fri curl http://a', '0 9 * jan mon-fri'],
    ['a carriage return at the end', '@hourly curl http://a\r', '@hourly'],
  ])('is read with %s', (_what, line, expression) => {
    expect(parse(line).entries[0]?.input.cadence).toMatchObject({ expression })
  })

  test('may set another time zone with CRON_TZ or TZ for the lines below it', () => {
    const text = [
      '@daily curl http://a',
      'CRON_TZ=Europe/Madrid',
      '@daily curl http://b',
      'TZ = "Asia/Tokyo"',
      '@daily curl http://c',
    ].join('\n')

    expect(parse(text).entries.map(({ input }) => input.cadence.timezone)).toEqual([
      'UTC',
      'Europe/Madrid',
      'Asia/Tokyo',
    ])
  })

  test('gives a note for each other variable, which is ignored', () => {
    expect(parse('MAILTO=ops@example.com\nPATH=/bin\n').notes).toEqual([
      'line 1: MAILTO is ignored: a schedule has no environment',
      'line 2: PATH is ignored: a schedule has no environment',
    ])
  })

  test.each([
    ['the comment right above', '# Nightly report\n@daily curl http://a', ['Nightly report']],
    ['the last of several comments', '# Reports\n# Nightly\n@daily curl http://a', ['Nightly']],
    ['a comment that says so', '# name: Nightly\n@daily curl http://a', ['Nightly']],
    ['not a comment with a blank line between', '# Reports\n\n@daily curl http://a', ['curl http://a']],
    ['not a line that was commented out', '# 0 5 * * * old\n@daily curl http://a', ['curl http://a']],
    ['not a macro that was commented out', '#@daily old\n@daily curl http://a', ['curl http://a']],
    ['not the usual header', '# m h  dom mon dow   command\n@daily curl http://a', ['curl http://a']],
    ['not a line of dashes', '# -----\n@daily curl http://a', ['curl http://a']],
    ['made unique', '@daily curl http://a\n@hourly curl http://a', ['curl http://a', 'curl http://a (2)']],
    ['cut where it is long', `@daily curl http://a/${'x'.repeat(100)}`, [`curl http://a/${'x'.repeat(45)}…`]],
  ])('names a schedule by %s', (_what, text, names) => {
    expect(namesIn(text)).toEqual(names)
  })

  test.each([
    ['@reboot curl http://a', /^expected a time, got @reboot/],
    ['/usr/bin/backup', /expected five time fields/],
    ['0 9 * * * /usr/bin/backup', /expected a call of curl or wget, got \/usr\/bin\/backup: .*--url/],
    ['0 9 * * * curl http://a | mail me', /needs a shell \(\|\)/],
    ['0 9 * * * curl -u me:secret http://a', /got -u: remove it/],
    ['0 0 9 * * * curl http://a', /expected five time fields and a command, got 6 fields \(0 0 9 \* \* \*\): remove/],
    ['0 0 9 ? * MON-FRI curl http://a', /got 6 fields \(0 0 9 \? \* MON-FRI\)/],
    ['0 0/5 9 * * 1-5 2027 curl http://a', /got 7 fields/],
    ['17 * * * * root cd / && run-parts /etc/cron.hourly', /got the user root: .*system crontab.*remove the user/],
    ['@daily alice /usr/bin/curl http://a', /got the user alice: .*system crontab/],
  ])('with %s is refused with the line number and the reason', (line, reason) => {
    const { entries, refusals } = parse(`\n${line}`)

    expect({ entries, place: refusals[0]?.place }).toEqual({ entries: [], place: 'line 2' })
    expect(refusals[0]?.reason).toMatch(reason)
  })

  test('sends other commands to a hook if one is given', () => {
    const { entries, refusals } = parse('0 9 * * * /usr/bin/backup --all | gzip', HOOK)

    expect(refusals).toEqual([])
    expect(entries[0]?.input.target).toEqual({
      kind: 'http',
      url: HOOK,
      method: 'POST',
      payload: { command: '/usr/bin/backup --all | gzip' },
    })
  })

  test.each(['7z a backup.7z', 'nice curl http://a', 'sudo wget http://a', 'root-check --all'])(
    'is read with the first word of %s as a program, not as a time field or a user',
    (command) => {
      expect(parse(`0 9 * * * ${command}`, HOOK).entries[0]?.input.target).toMatchObject({ payload: { command } })
    },
  )

  test('refuses extra fields before a command even if a hook is given', () => {
    expect(parse('0 0 9 * * * backup\n0 9 * * * root backup', HOOK).refusals).toHaveLength(2)
  })

  test('refuses @reboot and unknown flags even if a hook is given', () => {
    expect(parse('@reboot x\n@daily curl -k http://a', HOOK).refusals).toHaveLength(2)
  })

  test('takes the text after % as standard input, and an escaped % literally', () => {
    const { entries, notes } = parse('@daily mail me%Hello%there\n@daily date +\\%F', HOOK)

    expect(entries.map(({ input }) => (input.target as { payload: unknown }).payload)).toEqual([
      { command: 'mail me', stdin: 'Hello\nthere' },
      { command: 'date +%F' },
    ])
    expect(notes).toEqual(['line 1: the text after % is standard input in cron; the hook receives it as stdin'])
  })

  test('gives a note for the parts of a call that are ignored', () => {
    expect(parse('@daily curl http://a >>/var/log/a.log 2>&1').notes).toEqual([
      'line 1: the response is stored with the run, not in /var/log/a.log',
    ])
    expect(parse('@daily curl http://a%body').notes).toEqual([
      'line 1: the text after % is standard input in cron; an HTTP call has none, so it is ignored',
    ])
  })
})
