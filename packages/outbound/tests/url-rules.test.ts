import { describe, expect, test } from 'vitest'

import { readUrl } from '../src/index.ts'

/** Why a URL is refused; undefined if it is accepted. */
function messageOf(url: string): string | undefined {
  const reading = readUrl(url)
  return reading.ok ? undefined : reading.message
}

describe('a URL that a user wrote', () => {
  test.each([
    ['http://example.com', 'http://example.com/'],
    ['HTTPS://Example.COM:443/a/../b?q=1', 'https://example.com/b?q=1'],
    ['http://127.0.0.1', 'http://127.0.0.1/'],
    ['http://127.0.0.1:80', 'http://127.0.0.1/'],
    ['HTTP://[2001:db8::1]:8080', 'http://[2001:db8::1]:8080/'],
    ['http://my_service-1:3000', 'http://my_service-1:3000/'],
    ['https://bücher.example/ä', 'https://xn--bcher-kva.example/%C3%A4'],
    ['https://аpple.com/', 'https://xn--pple-43d.com/'],
    ['http://example.com./', 'http://example.com./'],
    ['http://example.com/@user:pass', 'http://example.com/@user:pass'],
  ])('%s is read as %s', (given, href) => {
    expect(readUrl(given)).toEqual({ ok: true, href })
  })

  test.each([
    '',
    'example.com',
    '//example.com',
    'file:///etc/passwd',
    'ftp://example.com/',
    'gopher://example.com/',
    'data:text/plain,x',
    'javascript:alert(1)',
    'unix:/var/run/docker.sock',
    'http:example.com',
    'http:/example.com',
    'http:///example.com',
    'http://',
    'http://?x',
    'http://user:hunter2@example.com/',
    'http://user@example.com/',
    'http://@example.com/',
    'http://example.com/#part',
    'http://example.com/#',
    'http://example.com:0/',
    'http://example.com:65536/',
    'http://example.com:x/',
    'http://exa mple.com/',
    ' http://example.com/',
    'http://example.com/ ',
    'http://example.com/\r\nHost: evil',
    'http://exam\tple.com/',
    'http://example.com\\@evil.com/',
    'http://example.com/\0',
    'http://256.256.256.256/',
    'http://[::1/',
    'http://exa<mple.com/',
    'http://*/',
    'http://*.example.com/',
    'http://exa,mple.com/',
    "http://exa'mple.com/",
    'http://ex%61mple.com/',
    'http://example..com/',
    'http://example.com../',
    `http://${'x'.repeat(64)}.com/`,
    `http://${'x.'.repeat(127)}com/`,
    `http://example.com/${'x'.repeat(2048)}`,
    `http://example.com/${'é'.repeat(1000)}`,
    `http://${'x'.repeat(65_536)}`,
  ])('%j is refused', (url) => {
    expect(messageOf(url)).toMatch(/^expected .+, got .+[^.]$/)
    expect(messageOf(url)).not.toMatch(/[\p{Cc}]|hunter2/u)
  })
})

describe('an address in a URL', () => {
  test.each([
    ['http://127.1/', '127.0.0.1'],
    ['http://0x7f000001:8080/', '127.0.0.1'],
    ['http://2130706433', '127.0.0.1'],
    ['http://0177.0.0.1', '127.0.0.1'],
    ['http://１２７.0.0.1', '127.0.0.1'],
    ['http://127.0.0.1./', '127.0.0.1'],
    ['http://0/', '0.0.0.0'],
    ['http://1.1.257/', '1.1.1.1'],
    ['http://[::ffff:127.0.0.1]/', '127.0.0.1'],
    ['http://[::ffff:7f00:1]/', '127.0.0.1'],
    ['http://[2001:DB8:0::1]/', '[2001:db8::1]'],
    ['http://[0:0:0:0:0:0:0:1]:80/', '[::1]'],
  ])('that is written as %s is refused, and the message shows its plain form', (url, plain) => {
    expect(messageOf(url)).toBe(`expected the address in its plain form (${plain}), got "${url}"`)
  })
})
