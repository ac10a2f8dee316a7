// Where the students of a sample live: countries with their cities, and how schools are named there. The schools are
// made up.

export interface City {
  readonly name: string;
  readonly latitude: number;
  readonly longitude: number;
}

export interface Region {
  readonly code: string;
  readonly country: string;
  /** How many students live there, as a share of all. */
  readonly weight: number;
  /** The largest first: most students live there. */
  readonly cities: readonly City[];
  institute(city: string, word: string): string;
}

function city(name: string, latitude: number, longitude: number): City {
  return { name, latitude, longitude };
}

export const regions: readonly Region[] = [
  {
    code: 'GB',
    country: 'United Kingdom',
    weight: 0.36,
    cities: [
      city('London', 51.5074, -0.1278),
      city('Manchester', 53.4808, -2.2426),
      city('Birmingham', 52.4862, -1.8904),
      city('Leeds', 53.8008, -1.5491),
      city('Glasgow', 55.8642, -4.2518),
      city('Sheffield', 53.3811, -1.4701),
      city('Nottingham', 52.9548, -1.1581),
      city('Cardiff', 51.4816, -3.1791),
    ],
    institute: (name, word) => `${name} ${word} College`,
  },
  {
    code: 'DE',
    country: 'Germany',
    weight: 0.2,
    cities: [
      city('Berlin', 52.52, 13.405),
      city('München', 48.1351, 11.582),
      city('Köln', 50.9375, 6.9603),
      city('Frankfurt am Main', 50.1109, 8.6821),
      city('Leipzig', 51.3397, 12.3731),
      city('Göttingen', 51.5413, 9.9158),
    ],
    institute: (name, word) => `Hochschule ${word} ${name}`,
  },
  {
    code: 'FR',
    country: 'France',
    weight: 0.15,
    cities: [
      city('Paris', 48.8566, 2.3522),
      city('Lyon', 45.764, 4.8357),
      city('Toulouse', 43.6047, 1.4442),
      city('Lille', 50.6292, 3.0573),
      city('Rennes', 48.1173, -1.6778),
      city('Orléans', 47.9029, 1.9039),
    ],
    institute: (name, word) => `École ${word}, ${name}`,
  },
  {
    code: 'ES',
    country: 'Spain',
    weight: 0.12,
    cities: [
      city('Madrid', 40.4168, -3.7038),
      city('Sevilla', 37.3891, -5.9845),
      city('Zaragoza', 41.6488, -0.8891),
      city('Granada', 37.1773, -3.5986),
      city('Córdoba', 37.8882, -4.7794),
    ],
    institute: (name, word) => `Instituto ${word} de ${name}`,
  },
  {
    code: 'NL',
    country: 'Netherlands',
    weight: 0.08,
    cities: [
      city('Amsterdam', 52.3676, 4.9041),
      city('Utrecht', 52.0907, 5.1214),
      city('Eindhoven', 51.4416, 5.4697),
      city('Groningen', 53.2194, 6.5665),
    ],
    institute: (name, word) => `Hogeschool ${word} ${name}`,
  },
  {
    code: 'IE',
    country: 'Ireland',
    weight: 0.05,
    cities: [
      city('Dublin', 53.3498, -6.2603),
      city('Cork', 51.8985, -8.4756),
      city('Limerick', 52.668, -8.6305),
    ],
    institute: (name, word) => `${word} Institute, ${name}`,
  },
  {
    code: 'GR',
    country: 'Greece',
    weight: 0.04,
    cities: [
      city('Αθήνα', 37.9838, 23.7275),
      city('Θεσσαλονίκη', 40.6401, 22.9444),
      city('Λάρισα', 39.639, 22.4191),
    ],
    institute: (name, word) => `Σχολή ${word}, ${name}`,
  },
];

export const instituteWords = [
  'Riverside',
  'Northgate',
  'Hillcrest',
  'Meridian',
  'Westfield',
  'Lindenhof',
  'Harbour',
  'Parkside',
  'Aurora',
  'Eastbridge',
  'Belvedere',
  'Stonegate',
];

export const courses = [
  'Accounting and Finance',
  'Agricultural Science',
  'Architecture',
  'Art History',
  'Biochemistry',
  'Biology',
  'Business Administration',
  'Chemical Engineering',
  'Chemistry',
  'Civil Engineering',
  'Computer Science',
  'Data Science',
  'Dentistry',
  'Economics',
  'Education',
  'Electrical Engineering',
  'English Literature',
  'Environmental Science',
  'Film and Media',
  'Fine Art',
  'Geography',
  'Graphic Design',
  'History',
  'Hospitality Management',
  'International Relations',
  'Law',
  'Linguistics',
  'Marketing',
  'Mathematics',
  'Mechanical Engineering',
  'Medicine',
  'Modern Languages',
  'Music',
  'Nursing',
  'Pharmacy',
  'Philosophy',
  'Physics',
  'Politics, Philosophy and Economics',
  'Psychology',
  'Sports Science',
];
