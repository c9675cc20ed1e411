import { Redis } from 'ioredis'

/** Its version, and what it does before it says that something is kept. */
export async function describeRedis(url: string): Promise<{ version: string; settings: Record<string, string> }> {
  const redis = new Redis(url)
  try {
    const info = await redis.info('server')
    const settings: Record<string, string> = {}
    for (const name of ['appendonly', 'appendfsync']) {
      const [, value] = (await redis.config('GET', name)) as [string, string]
      settings[name] = value
    }
    return { version: /^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown', settings }
  } finally {
    redis.disconnect()
  }
}
