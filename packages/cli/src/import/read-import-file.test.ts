import { expect, test } from 'vitest'

import { detectFormat } from './read-import-file.ts'

test.each([
  ['schedules.json', '[]', 'json'],
  ['schedules.JSON', '{}', 'json'],
  ['schedules.json', 'broken', 'json'],
  ['schedules.yaml', '- name: a', 'yaml'],
  ['schedules.yml', '{}', 'yaml'],
  ['schedules.ndjson', '', 'ndjson'],
  ['schedules.jsonl', '', 'ndjson'],
  ['/etc/cron.d/my.cron', '', 'crontab'],
  ['crontab', '', 'crontab'],
  ['dir.json/crontab', '@daily x', 'crontab'],
  ['-', ' [\n{"name":"a"}]', 'json'],
  ['-', '{\n"schedules": []}', 'json'],
  ['-', '{"schedules":[]}', 'json'],
  ['-', '{"name":"a"}\n{"name":"b"}\n', 'ndjson'],
  ['-', '@daily curl http://a', 'crontab'],
] as const)('a file %s that begins with %j is read as %s', (path, text, format) => {
  expect(detectFormat(path, text)).toBe(format)
})
