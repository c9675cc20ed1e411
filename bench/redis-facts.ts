// Separate from redis.ts, because the tests of the bench import that file and a clean clone has no ioredis.
import { Redis } from 'ioredis'

/** The version of a Redis, and its durability settings. */
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
