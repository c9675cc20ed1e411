/** The twelve of the golden vectors: each is there for a rule of its own. */
export const GOLDEN_ZONES = [
  'America/New_York', // an hour at 02:00
  'Europe/London', // an hour at 01:00 UTC, and UTC itself in winter
  'Australia/Lord_Howe', // half an hour
  'Africa/Cairo', // at midnight, again since 2023
  'America/Sao_Paulo', // at midnight, no more since 2019
  'Pacific/Apia', // 30 December 2011 is missing
  'Asia/Kolkata', // +05:30, never
  'Asia/Kathmandu', // +05:45, never
  'Pacific/Chatham', // an hour at 02:45, +12:45
  'Africa/Casablanca', // winter time in Ramadan
  'Antarctica/Troll', // two hours
  'UTC',
] as const

export const OTHER_ZONES = [
  'Asia/Tehran', // at midnight, until 2022
  'America/St_Johns', // -03:30, at 00:01 until 2011
  'Europe/Dublin', // winter is the exception, by law
  'America/Caracas', // half an hour, for good
  'Asia/Pyongyang', // half an hour, for good
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
