/** The commands of the command line that do what a page shows, to be copied. */
import type { WireJob } from '../wire/jobs.ts'
import type { ViewedBoard } from './viewed-board.ts'

/** Returns the commands that fit the state of a job, by their names. */
export function commandsFor(
  { uuid, state }: Pick<WireJob, 'uuid' | 'state'>,
  viewed: ViewedBoard,
): Record<string, string> {
  const board = `--board ${quote(withoutPassword(viewed.board.uri))}`
  const logbooks = viewed.persistence ? ` --persistence ${quote(withoutPassword(viewed.persistence.uri))}` : ''
  const commands: Record<string, string> = { show: `jobboard show ${uuid} ${board}${logbooks}` }
  if (state === 'TRASHED') {
    commands['restore'] = `jobboard trash restore ${uuid} ${board}`
    commands['purge'] = `jobboard trash purge ${uuid} ${board}`
  } else if (state === 'DONE') commands['result'] = `jobboard result ${uuid} ${board}${logbooks}`
  else {
    commands['cancel'] = `jobboard cancel ${uuid} ${board}`
    commands['wait'] = `jobboard wait ${uuid} ${board}`
    if (state === 'RUNNING') commands['release'] = `jobboard release ${uuid} ${board}`
  }
  return commands
}

/**
 * Removes the hidden passwords (`***`) from a URI: the command line reads passwords from its environment. Of a ZooKeeper URI the user is
 * removed, too, because JOBBOARD_ZOOKEEPER_AUTH has both.
 */
export function withoutPassword(uri: string): string {
  const [, place = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(uri) ?? []
  const shown = query.split('&').filter((parameter) => parameter !== '' && !parameter.endsWith('=***'))
  const named = /^zookeepers?:/.test(uri) ? place.replace(/\/\/[^/@]*:\*\*\*@/, '//') : place.replace(/:\*\*\*@/, '@')
  return [named.replace('//@', '//'), ...(shown.length > 0 ? [shown.join('&')] : [])].join('?')
}

/** Returns the text as a shell reads it as one word. */
function quote(text: string): string {
  return /^[\w:/.,@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
