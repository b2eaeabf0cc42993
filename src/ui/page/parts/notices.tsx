/** What is shown in the place of data, or beside data that is old: loading, empty, errors. */
import type { ComponentChildren, JSX } from 'preact'
import type { ApiError } from '../state/api.ts'
import { visible } from '../state/format.ts'
import type { Reading } from '../state/reading.ts'
import { texts } from '../texts.ts'
import { Lines } from './text.tsx'

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>
}

export function Problem({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }): JSX.Element {
  return (
    <div class="notice fault" role="alert">
      <p>
        <strong>{texts.errors.head(error.code)}</strong> <Lines text={error.message} max={2_000} />
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          {texts.errors.retry}
        </button>
      )}
    </div>
  )
}

/** Shows what was read; the error beside it if it could not be read again; what to do where it was never read. */
export function Loaded<T>({
  reading,
  children,
}: {
  reading: Reading<T>
  children: (data: T) => ComponentChildren
}): JSX.Element {
  const { data, error, reload } = reading
  return (
    <>
      {error && <Problem error={error} retry={reload} />}
      {data === undefined ? !error && <Loading /> : children(data)}
    </>
  )
}

export function Loading(): JSX.Element {
  return (
    <p class="empty" aria-busy="true">
      {texts.loading}
    </p>
  )
}

export function Warning({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="notice warning">{children}</p>
}

/** A page that the board's backend, or the server's configuration, cannot fill. */
export function Unsupported({ what }: { what: string }): JSX.Element {
  return <Empty>{texts.unsupported(visible(what))}</Empty>
}
