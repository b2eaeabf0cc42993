/** A web service that does nothing itself: it posts jobs, and tells whoever has the id of one where it stands. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { type JobBoard, type Persistence, type Tracked, track } from 'jobboard'

export interface Places {
  readonly board: JobBoard
  readonly persistence: Persistence
}

/** `POST /jobs` with `{ "url": … }` answers 202 with an id, `GET /jobs/ID` where it stands. */
export function webService(places: Places): Server {
  return createServer((request, response) => {
    answer(request, places).then(
      ({ status, body, headers }) => send(response, status, body, headers),
      // The board may be away: the client is told, and nothing of the error.
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
  const [, id] = /^\/jobs\/([\w-]+)$/.exec(url) ?? []
  if (method === 'POST' && url === '/jobs') return post(await json(request).catch(() => undefined), places)
  if (method === 'GET' && id !== undefined) return look(id, places)
  return { status: 404, body: { error: 'there is POST /jobs and GET /jobs/ID' } }
}

async function post(asked: unknown, { board }: Places): Promise<Answer> {
  const { url }: { url?: unknown } = Object(asked)
  if (typeof url !== 'string') return { status: 400, body: { error: 'url has to be a text' } }
  // By its name: the flow's code is where conductors run it. Who asks twice for a page gets the job that is under way.
  const { uuid } = await board.post('thumbnail', { url }, { key: `thumbnail ${url}` })
  return { status: 202, body: { id: uuid }, headers: { location: `/jobs/${uuid}` } }
}

async function look(id: string, places: Places): Promise<Answer> {
  const standing = await track(id, places)
  return { status: standing.status === 'unknown' ? 404 : 200, body: shown(standing) }
}

/** Results and failures may hold secrets: what a client sees is chosen here, one by one. */
function shown(standing: Tracked): unknown {
  const { status } = standing
  if (status === 'done') return { status, file: standing.results['draw'] }
  if (status === 'running' || status === 'waiting') return { status, tasks: standing.tasks }
  return { status }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Answer['headers'] = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
