/** Reads the settings of flows: what is set for flows and patterns, and which flows are disabled. */
import { describeDeclaration, settingTexts } from '../../views/index.ts'
import type { WireFlowSettings } from '../wire/board.ts'
import type { Unencoded } from '../wire/common.ts'
import type { ViewedBoard } from './viewed-board.ts'

/** Reads what is set for flows and patterns. @throws UnsupportedCapability, NotConnected */
export async function readFlowSettings(viewed: ViewedBoard): Promise<Unencoded<WireFlowSettings>[]> {
  await viewed.touch()
  // Not from the cache: an operator who has changed a setting must see it.
  return (await viewed.board.flowSettings.list()).map(({ settings, error, ...view }) => ({
    ...view,
    declared: describeDeclaration(view),
    enabled: settings?.enabled !== false,
    settings: settings && settingTexts(settings),
    error: error?.message,
  }))
}
