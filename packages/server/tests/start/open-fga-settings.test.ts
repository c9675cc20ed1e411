import { expect, test } from 'vitest'

import { readOpenFgaSettings } from '../../src/start/access-settings.ts'
import { OperatorError } from '../../src/start/operator-error.ts'
import { MODEL_ID, STORE_ID } from '../auth/open-fga-stand-in.ts'

const ENV = { CARILLON_OPENFGA_URL: 'http://openfga:8080', CARILLON_OPENFGA_STORE_ID: STORE_ID }

function refusalOf(env: Record<string, string>): string {
  try {
    readOpenFgaSettings(env)
  } catch (error) {
    if (error instanceof OperatorError && error.code === 'settings_invalid') return error.message
    throw error
  }
  return 'nothing was refused'
}

test('without any variable the built-in permission check applies', () => {
  expect(readOpenFgaSettings({})).toBeNull()
})

test('a URL and a store suffice', () => {
  expect(readOpenFgaSettings(ENV)).toEqual({
    url: 'http://openfga:8080',
    storeId: STORE_ID,
    modelId: null,
    token: null,
    relations: { member: 'can_read', admin: 'can_write' },
  })
})

test('every variable is read', () => {
  const env = {
    ...ENV,
    CARILLON_OPENFGA_MODEL_ID: MODEL_ID,
    CARILLON_OPENFGA_TOKEN: 'a-token',
    CARILLON_OPENFGA_MEMBER_RELATION: 'viewer',
    CARILLON_OPENFGA_ADMIN_RELATION: 'editor',
  }

  expect(readOpenFgaSettings(env)).toMatchObject({
    modelId: MODEL_ID,
    token: 'a-token',
    relations: { member: 'viewer', admin: 'editor' },
  })
})

test('a token without the other variables is refused', () => {
  expect(refusalOf({ CARILLON_OPENFGA_TOKEN: 'hunter2' })).toBe(
    'CARILLON_OPENFGA_URL, CARILLON_OPENFGA_STORE_ID: expected a value because CARILLON_OPENFGA_TOKEN has one, got ' +
      'nothing: set CARILLON_OPENFGA_URL and CARILLON_OPENFGA_STORE_ID together, or none',
  )
})

const ID = 'an id of OpenFGA, 26 capital letters and digits'
const BASE_URL = 'a URL of https or http, without credentials or a query'
const RELATION = 'the name of a relation, 1 to 50 characters without blanks, colons, # or @'

test.each([
  ['CARILLON_OPENFGA_URL', 'openfga:8080', BASE_URL, '"openfga:8080"'],
  ['CARILLON_OPENFGA_URL', 'https://fga.example.com/?a=b', BASE_URL, '"https://fga.example.com/?a=b"'],
  ['CARILLON_OPENFGA_URL', 'https://user:hunter2@fga.example.com', BASE_URL, 'one with credentials'],
  ['CARILLON_OPENFGA_STORE_ID', 'my-store', ID, '"my-store"'],
  ['CARILLON_OPENFGA_MODEL_ID', `${MODEL_ID}0`, ID, `"${MODEL_ID}0"`],
  ['CARILLON_OPENFGA_TOKEN', 'hunter2 hunter2', 'visible ASCII characters', 'a character that is not visible ASCII'],
  ['CARILLON_OPENFGA_ADMIN_RELATION', 'project#admin', RELATION, '"project#admin"'],
])('%s=%s is refused with the name of the variable', (variable, value, expected, told) => {
  expect(refusalOf({ ...ENV, [variable]: value })).toBe(`${variable}: expected ${expected}, got ${told}`)
})
