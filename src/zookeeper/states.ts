/**
 * The states of a client, and what leads from one to the next.
 *
 *     new         connect() was not called
 *     connecting  there is no session yet; requests wait
 *     connected   a session, and a connection to use it
 *     suspended   a session that may be alive, and no connection: its ephemeral znodes are still there, as far as anybody
 *                 knows; requests wait for the same session
 *     lost        the session is over, or too close to its end to be relied on; what waited was rejected. A new session
 *                 follows by itself (connecting), unless that was not wanted
 *     closed      close() was called; nothing is accepted any more
 *
 * From suspended a client goes back to connected only with the very same session. There is no way from lost to connected
 * but through connecting: whoever sees that has a new session, and none of the ephemeral znodes of the old one.
 */

export type ClientState = 'new' | 'connecting' | 'connected' | 'suspended' | 'lost' | 'closed'

const NEXT: Readonly<Record<ClientState, readonly ClientState[]>> = {
  new: ['connecting', 'closed'],
  connecting: ['connected', 'lost', 'closed'],
  connected: ['suspended', 'lost', 'closed'],
  suspended: ['connected', 'lost', 'closed'],
  lost: ['connecting', 'closed'],
  closed: [],
}

export function mayFollow(state: ClientState, next: ClientState): boolean {
  return NEXT[state].includes(next)
}
