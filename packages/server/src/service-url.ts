/**
 * Whether a URL may name another service that decides who is let in. Over plain http whoever sits between could decide
 * instead.
 * @param plainHttp where plain http will do: on this machine only, or on a network that the operator trusts
 */
export function isServiceUrl(text: string, plainHttp: 'loopback' | 'anywhere'): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && (plainHttp === 'anywhere' || isLoopback(url)))
}

/** What may be told of a URL that is wrong: perhaps it is so because of a password in it. */
export function describeUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return 'something that is no URL'
  return url.username === '' && url.password === '' ? JSON.stringify(text) : 'one with credentials'
}

/** The parser has written every spelling of an address the same way by now. */
function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}
