/** The twelve zones of the golden vectors. Each comment states the DST change for which the zone is listed. */
export const GOLDEN_ZONES = [
  'America/New_York', // one hour at 02:00
  'Europe/London', // one hour at 01:00 UTC; offset 0 in winter
  'Australia/Lord_Howe', // half an hour
  'Africa/Cairo', // at midnight, since 2023
  'America/Sao_Paulo', // at midnight, until 2019
  'Pacific/Apia', // 30 December 2011 is missing
  'Asia/Kolkata', // +05:30, no changes
  'Asia/Kathmandu', // +05:45, no changes
  'Pacific/Chatham', // one hour at 02:45, +12:45
  'Africa/Casablanca', // winter time in Ramadan
  'Antarctica/Troll', // two hours
  'UTC',
] as const

export const OTHER_ZONES = [
  'Asia/Tehran', // at midnight, until 2022
  'America/St_Johns', // -03:30, at 00:01 until 2011
  'Europe/Dublin', // by law, winter time is the exception
  'America/Caracas', // a permanent change of half an hour
  'Asia/Pyongyang', // a permanent change of half an hour
  'America/Havana', // at midnight
  'Asia/Gaza', // around Ramadan
  'America/Scoresbysund', // changed its rule in 2024
  'Asia/Beirut',
  'Pacific/Kiritimati', // +14
  'Pacific/Pago_Pago', // -11
  'Australia/Sydney',
  'America/Santiago',
  'Europe/Istanbul',
] as const
