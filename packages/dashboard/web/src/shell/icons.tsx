// The mark of the product, and small icons; all of them are decoration beside a name.

const PATHS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  check: "m3 8.5 3.2 3.2L13 4.8",
  close: "m4 4 8 8m0-8-8 8",
  alert: "M8 4.5v4m0 2.6v.2M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z",
  system: "M2 3h12v8H2zM6 14h4m-2-3v3",
  light: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm0-10v1.5M8 13.500V15M1 8h1.500M13.5 8H15M3 3l1.1 1.100M11.9 11.9 13 13M3 13l1.1-1.100M11.9 4.1 13 3",
  dark: "M13.5 9.800A6 6 0 0 1 6.2 2.500a6 6 0 1 0 7.3 7.300Z",
  down: "m4.5 6.5 3.5 3.5 3.5-3.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ of }: { of: IconName }) {
  return (
    <svg class="pictogram" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[of]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

/** A loss that comes down. */
export function Mark() {
  return (
    <svg class="mark" width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#2b54c9" />
      <path d="M7 8c2.5 10.5 8.5 14 18 14.5" fill="none" stroke="#fff" stroke-width="3.2" stroke-linecap="round" />
      <circle cx="25" cy="22.5" r="3.6" fill="#fff" />
    </svg>
  );
}
