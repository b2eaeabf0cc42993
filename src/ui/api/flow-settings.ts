/** The routes of the settings of flows: what is set for flows and patterns, and how that is changed. */
import type { z } from 'zod'
import { parseFlowSettings, parseSettingNames } from '../../views/index.ts'
import { readFlowSettings } from '../boards/flow-settings.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import { done, flowSettingsActionBody } from '../wire/actions.ts'
import { flowSettingsList } from '../wire/board.ts'
import { type Change, carryOut } from './audit.ts'
import { boardOf } from './board-of.ts'
import { defineRoute, type Route } from './route.ts'

export const FLOW_SETTINGS: readonly Route[] = [
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/flows/settings', summary: 'The settings of flows' },
    answer: flowSettingsList,
    handle: async (call) => ({ settings: await readFlowSettings(boardOf(call)) }),
  }),
  defineRoute({
    ...{ method: 'POST', path: '/boards/:board/flows/settings', summary: 'Set or remove settings of flows' },
    ...{ body: flowSettingsActionBody, answer: done },
    handle: async (call) => {
      const viewed = boardOf(call)
      const { action, flow, reason } = call.body
      const change: Change = { action: `flow.${action}`, what: `settings of flow ${flow}`, reason }
      return carryOut(call, viewed, change, async () => {
        await changeSettings(viewed, call.body, call.access.who)
        return { ok: true }
      })
    },
  }),
]

/** @throws InvalidArgument, NotFound, UnsupportedCapability, NotConnected */
async function changeSettings(
  { board }: ViewedBoard,
  body: z.infer<typeof flowSettingsActionBody>,
  by: string,
): Promise<void> {
  const { flowSettings } = board
  // The record has the name of the person, so the reason does not repeat it.
  const change = { by, reason: body.reason?.trim() || undefined }
  if (body.action === 'set') await flowSettings.set(body.flow, parseFlowSettings(body.settings), change)
  else if (body.keys === undefined) await flowSettings.unset(body.flow, change)
  else await flowSettings.unset(body.flow, { ...change, keys: parseSettingNames(body.keys) })
}
