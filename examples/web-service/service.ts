/** A web service that posts jobs, and returns the state of a job by its id. It runs no jobs itself. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { type JobBoard, type Persistence, type Tracked, track } from 'jobboard'

export interface Places {
  readonly board: JobBoard
  readonly persistence: Persistence
}

/** `POST /jobs` with `{ "url": … }` answers 202 with an id; `GET /jobs/ID` answers with the state of the job. */
export function webService(places: Places): Server {
  return createServer((request, response) => {
    answer(request, places).then(
      ({ status, body, headers }) => send(response, status, body, headers),
      // The board may be away: the client receives a status, and no details of the error.
      () => send(response, 503, { error: 'try again later' }),
    )
  })
}

interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

async function answer(request: IncomingMessage, places: Places): Promise<Answer> {
  const { method, url = '/' } = request
  const [, id] = /^\/jobs\/([\w.-]+)$/.exec(url) ?? []
  if (method === 'POST' && url === '/jobs') return post(await json(request).catch(() => undefined), places)
  if (method === 'GET' && id !== undefined) return look(id, places)
  return { status: 404, body: { error: 'there is POST /jobs and GET /jobs/ID' } }
}

async function post(asked: unknown, { board }: Places): Promise<Answer> {
  const { url }: { url?: unknown } = Object(asked)
  if (typeof url !== 'string') return { status: 400, body: { error: 'url has to be a text' } }
  // The flow is posted by name: only conductors have its code. A second request for a page returns the existing job.
  // With the reference, any process of the service finds the job in one round trip.
  const { ref } = await board.post('thumbnail', { url }, { key: `thumbnail ${url}` })
  return { status: 202, body: { id: ref }, headers: { location: `/jobs/${ref}` } }
}

async function look(id: string, places: Places): Promise<Answer> {
  const tracked = await track(id, places)
  return { status: tracked.status === 'unknown' ? 404 : 200, body: shown(tracked) }
}

/** Returns what a client may see. Results and failures may contain secrets, so each field is chosen here. */
function shown(tracked: Tracked): unknown {
  const { status } = tracked
  if (status === 'done') return { status, file: tracked.results['draw'] }
  if (status === 'running' || status === 'waiting') return { status, tasks: tracked.tasks }
  return { status }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Answer['headers'] = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
