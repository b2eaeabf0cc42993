/** Notices in place of data, or in addition to old data: loading, empty, errors. */
import type { ComponentChildren, JSX } from 'preact'
import type { ApiError } from '../state/api.ts'
import { visible } from '../state/format.ts'
import type { Reading } from '../state/reading.ts'
import { texts } from '../texts.ts'
import { Lines } from './text.tsx'

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>
}

/** Returns whether the same request would fail again: its text says why, and a code or a button would not help. */
function isFinal({ status }: ApiError): boolean {
  return status === 400 || status === 404
}

export function Problem({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }): JSX.Element {
  return (
    <div class="notice fault" role="alert">
      <p>
        {!isFinal(error) && <strong>{texts.errors.head(error.code)}</strong>} <Lines text={error.message} max={2_000} />
      </p>
      {retry && !isFinal(error) && (
        <button type="button" onClick={retry}>
          {texts.errors.retry}
        </button>
      )}
    </div>
  )
}

/** Shows the data, and the error of the newest read if it has failed. */
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

/** Says that the board, or the configuration of the server, does not support the page. */
export function Unsupported({ what }: { what: string }): JSX.Element {
  return <Empty>{texts.unsupported(visible(what))}</Empty>
}
