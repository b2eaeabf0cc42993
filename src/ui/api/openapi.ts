/** The description of the API (OpenAPI 3.1), made from the schemas by which requests and answers are checked. */
import { z } from 'zod'
import { packageVersion } from '../../core/package-version.ts'
import { NEEDS } from '../wire/actions.ts'
import { problem } from '../wire/common.ts'
import type { Route } from './route.ts'

type Json = Record<string, unknown>

/** Returns the description of these routes. */
export function describeApi(routes: readonly Route[]): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'jobboard',
      version: packageVersion(),
      description:
        'The API of the dashboard. A change is a POST with Content-Type: application/json; a program sends an Authorization header with it.',
    },
    servers: [{ url: '.' }],
    paths,
    components: { schemas: { Problem: toSchema(problem, 'output') } },
  }
}

function toOperation({ method, path, summary, query, body, answer, values }: Route): Json {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name)
  return {
    summary,
    operationId: toOperationId(method, path),
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...(query ? toQueryParameters(query) : []),
    ],
    ...(body
      ? { requestBody: { required: true, content: { 'application/json': { schema: toSchema(body, 'input') } } } }
      : {}),
    responses: {
      200: {
        description: answer
          ? 'The answer'
          : 'A stream of Server-Sent Events; the data of each is a JSON object with board, topics and at; the event alive comes every 15 s, with an empty object',
        content: answer
          ? { 'application/json': { schema: toSchema(answer, 'output') } }
          : { 'text/event-stream': { schema: { type: 'string' } } },
      },
      default: {
        description: values ? 'Refused; 403 without the right to see values' : `Refused${toNeeds(path)}`,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  }
}

function toNeeds(path: string): string {
  const level = NEEDS[path.slice(path.lastIndexOf('/') + 1)]
  return level ? `; 403 without level ${level}` : ''
}

function toOperationId(method: string, path: string): string {
  const words = path.split('/').filter((part) => part !== '' && part !== 'boards')
  return [method.toLowerCase(), ...words.map((part) => part.replace(/^:/, 'by-'))].join('-')
}

function toQueryParameters(query: z.ZodType): Json[] {
  const { properties = {}, required = [] } = toSchema(query, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
}

function toSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12', unrepresentable: 'any' })
  return rest
}
