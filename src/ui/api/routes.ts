/** All routes of the API. */
import { ACTIONS } from './actions.ts'
import { FLOW_SETTINGS } from './flow-settings.ts'
import { LISTS } from './lists.ts'
import { PICTURES } from './pictures.ts'
import { READS } from './reads.ts'
import type { Route } from './route.ts'

export const ROUTES: readonly Route[] = [...LISTS, ...READS, ...PICTURES, ...ACTIONS, ...FLOW_SETTINGS]
