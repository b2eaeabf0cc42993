/** The doctor's checks of the settings of flows: disabled flows, settings that this release cannot read, and names that no flow has. */
import type { FlowSettingsView, JobBoard } from '../../board/index.ts'
import { PatternMap } from '../../core/collections/pattern-map.ts'
import { shellWord } from '../output/render/text.ts'
import { errorFinding, type Finding, formatCount, okFinding, warningFinding } from './finding.ts'

/** Examines the settings of flows on a board. @throws NotConnected, UnsupportedCapability */
export async function examineFlowSettings(board: JobBoard): Promise<Finding[]> {
  const settings = await board.flowSettings.list()
  if (settings.length === 0) return []
  const known = await board.flows()
  const unmatched = findUnmatched(
    settings,
    known.map(({ name }) => name),
  )
  const found = [...settings.flatMap(toFindings), ...unmatched.map(toUnmatchedFinding)]
  return found.length > 0 ? found : [okFinding('flows', formatCount(settings.length, 'flow setting'))]
}

function toFindings({ flow, settings, error, by, since, reason }: FlowSettingsView): Finding[] {
  if (error) {
    const advice = `upgrade this release, or remove them: jobboard flows unset ${shellWord(flow)}`
    return [errorFinding('flow', `${error.message}; none of its jobs starts here`, advice)]
  }
  if (settings?.enabled !== false) return []
  const why = reason === undefined ? '' : ` (${reason})`
  const text = `flow ${flow} was disabled by ${by} at ${since?.toISOString()}${why}: none of its jobs starts`
  return [warningFinding('flow', text, `jobboard flows unset ${shellWord(flow)} enabled`)]
}

/** Returns the settings whose flow or pattern is that of no flow that a conductor has, or has had. */
function findUnmatched(settings: readonly FlowSettingsView[], flows: readonly string[]): readonly FlowSettingsView[] {
  const patterns = new PatternMap(settings, ({ flow }) => flow)
  const matched = new Set(flows.flatMap((flow) => patterns.findAll(flow)))
  return settings.filter((each) => !matched.has(each))
}

/** Not a warning: settings may be made before the first conductor has the flow. */
function toUnmatchedFinding({ flow }: FlowSettingsView): Finding {
  return okFinding('flow', `settings of flow ${flow}: matches no flow that a conductor has had`)
}
