import * as grants from '../../src/access/store/grants.ts'
import * as keys from '../../src/access/store/keys.ts'
import * as members from '../../src/access/store/members.ts'
import { readPermissions } from '../../src/access/store/permissions.ts'
import * as secrets from '../../src/access/store/secrets.ts'
import * as tenants from '../../src/access/store/tenants.ts'
import type { Samples } from './describe.ts'
import { ACTOR, AT, BY, BYTES, DATE, FIRST_PAGE, ID, IDS, LIMIT, NOW, SCHEDULE_IDS, SCOPE } from './sample-values.ts'

const GRANT = { ...SCOPE, ...BY, id: ID, subject: ACTOR, scopes: ['http'], billingAccountId: null, expiresAt: AT }
const KEY = { ...SCOPE, ...BY, id: ID, subject: ACTOR, role: 'member', prefix: 'ck_', hash: BYTES } as const
const MEMBER = { ...SCOPE, ...BY, subject: ACTOR, role: 'member' } as const
const NAME = { ...SCOPE, name: 'token' }
const SECRET = { ...NAME, ...BY, version: 1, keyId: 'key', nonce: BYTES, ciphertext: BYTES }
const LIMITS = {
  maxSchedulesPerProject: 1,
  maxSchedulesPerUser: 1,
  minimumSeconds: 1,
  requestsPerMinute: 1,
  allowedHosts: [],
}
const RUN = {
  ...SCOPE,
  scheduleId: ID,
  ownerSubject: ACTOR,
  grant: { id: ID, version: '1', subject: ACTOR, billingAccountId: null, scopes: ['http'], scheduleId: null },
}

export const samples: Samples = [
  (db) => grants.findGrant(db, GRANT),
  (db) => grants.findGrants(db, { ...SCOPE, ids: IDS }),
  (db) => grants.insertGrant(db, GRANT),
  (db) => grants.listGrants(db, { ...SCOPE, ...FIRST_PAGE }),
  (db) => grants.revokeGrant(db, GRANT),
  (db) => grants.renewGrant(db, GRANT),
  (db) => grants.revokeOwnGrants(db, { ...SCHEDULE_IDS, ...BY }),
  (db) => grants.findExpiringGrants(db, { ...NOW, ...LIMIT }),
  (db) => grants.markWarned(db, GRANT),

  (db) => keys.insertApiKey(db, KEY),
  (db) => keys.findApiKey(db, KEY),
  (db) => keys.listApiKeys(db, { ...SCOPE, ...FIRST_PAGE }),
  (db) => keys.revokeApiKey(db, KEY),

  (db) => members.saveMember(db, MEMBER),
  (db) => members.removeMember(db, MEMBER),
  (db) => members.findMember(db, MEMBER),
  (db) => members.listMembers(db, { ...SCOPE, ...FIRST_PAGE }),
  (db) => members.listRemoved(db, { ...SCOPE, subjects: [ACTOR] }),

  (db) => readPermissions(db, { runs: [RUN], ...NOW }),

  (db) => secrets.lockSecretName(db, NAME),
  (db) => secrets.findKeptSecret(db, NAME),
  (db) => secrets.saveSecret(db, SECRET),
  (db) => secrets.resealSecret(db, SECRET),
  (db) => secrets.listSecrets(db, { ...SCOPE, ...FIRST_PAGE }),
  (db) => secrets.listKnownSecrets(db, { ...SCOPE, names: ['token'] }),
  (db) => secrets.listSecretsOfOtherKeys(db, { keyId: 'key', after: NAME, ...LIMIT }),
  (db) => secrets.deleteSecret(db, NAME),
  (db) => secrets.countSecrets(db, { keyIds: ['key'] }),

  async (db) => {
    for (const now of [null, DATE]) for (const statement of tenants.tenantRulesStatements(now)) await db.run(statement)
  },
  (db) => tenants.readTenantRules(db, { ...SCOPE, ...NOW }),
  (db) => tenants.findTenantLimits(db, SCOPE),
  (db) => tenants.saveTenantLimits(db, { ...SCOPE, ...BY, ...LIMITS }),
  (db) => tenants.requireQuota(db, { ...SCOPE, ownerSubject: ACTOR }),
]
