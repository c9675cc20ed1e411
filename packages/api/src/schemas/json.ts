import { z } from 'zod'

import { component } from '../component.ts'

/** Whatever JSON can say. Not z.json(): a document of it refers to itself, which generators bear badly. */
export const json = component('Json', z.unknown(), 'Any JSON value.')
